"""The ports on AWS; the only room that imports boto3."""
