"""Other people's tools on models whose circuit is known, each in an environment of its own."""
