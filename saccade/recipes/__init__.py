"""The built-in recipes, how recipes are read and written, and those of earlier versions as those of today."""
