"""The version of this code. It is kept here and nowhere else, so that nothing needs the project to be installed."""

VERSION = "0.1.0"
