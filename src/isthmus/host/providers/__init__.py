"""Models, reached over the network or played by a script: one seam, a file per way."""
