"""The workflows of the commands, one module a command."""
