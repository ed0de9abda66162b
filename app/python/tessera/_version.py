"""Version of the module; the library's first two numbers must be the same."""
VERSION = "0.1.0"
