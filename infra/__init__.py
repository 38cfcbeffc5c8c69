"""The CDK app: everything of headrace that lives in an AWS account, one construct per file."""
