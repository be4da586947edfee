"""The parameters with which moto's CloudFormation makes the stack of `infra/table.yaml`."""

# moto resolves the export StreamArn without looking at its condition, and leaves a hole in a list where CloudFormation
# leaves an element out. With a stream and a customer key neither shows; moto does nothing with them.
PARAMETERS = {
    "StreamViewType": "KEYS_ONLY",
    "Encryption": "CUSTOMER",
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/local",
    "DeletionProtection": "false",
}
