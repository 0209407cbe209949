"""The one place of the router that reads and writes files."""
