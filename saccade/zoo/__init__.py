"""The named models of the papers, as configurations; their weights in and out of Hugging Face folders."""
