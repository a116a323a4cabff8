"""Stores of finished runs that several machines share: a folder or an S3 bucket."""
