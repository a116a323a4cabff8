"""Shared stores: finished runs in a directory or an S3 bucket that several machines use."""
