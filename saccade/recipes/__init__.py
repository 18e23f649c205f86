"""The built-in recipes, and those of earlier versions as those of today."""
