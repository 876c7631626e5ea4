"""Files: tables that are read, and results that are written, whole or not at all."""
