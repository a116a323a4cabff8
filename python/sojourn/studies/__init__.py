"""Studies: published numbers and claims, compared with what is measured here."""
