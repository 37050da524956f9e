"""The tasks that come with the library, each with its programs."""
