"""Other projects' own routers on our split, each in an environment of its own: see README.md."""
