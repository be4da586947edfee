#!/bin/sh
# Deletes the two stacks of `make deploy`, once nothing is in the way and whoever asks has named the stack.
#
#     sh infra/destroy.sh STACK        AWS is the AWS CLI, CONFIRM the stack's name where nobody can be asked
set -eu
stack=$1
aws=${AWS:-aws}
newline='
'

# CloudFormation names the importers of one export, and calls it an error where there are none.
importers_of() {
    if found=$($aws cloudformation list-imports --export-name "$1" --output text --query Imports 2>&1); then
        printf '%s\n' "$found" | tr '\t' '\n' | grep -vx "$stack-observability" || true
    else
        case $found in
        *'is not imported by any stack'*) ;;
        *) printf '%s\n' "$found" >&2 && return 1 ;;
        esac
    fi
}

holders_of() {
    found=$($aws iam list-entities-for-policy --policy-arn "$1" --output text \
        --query '[PolicyRoles[].RoleName, PolicyUsers[].UserName, PolicyGroups[].GroupName][]') || return 1
    printf '%s\n' "$found" | tr '\t' '\n'
}

outputs() {
    $aws cloudformation describe-stacks --stack-name "$stack" --output text --query "$1"
}

# A stack whose creation failed has no outputs, and a table all the same.
resource=$($aws cloudformation describe-stack-resource --stack-name "$stack" --logical-resource-id Table \
    --output text --query 'StackResourceDetail.[ResourceStatus, PhysicalResourceId]')
exports=$(outputs 'Stacks[0].Outputs[].ExportName')
policies=$(outputs "Stacks[0].Outputs[?ends_with(OutputKey, 'PolicyArn')].OutputValue")

importers=
for export in $exports; do
    [ "$export" = None ] || importers="$importers$(importers_of "$export")$newline"
done
importers=$(printf '%s' "$importers" | sort -u | sed '/^$/d')
holders=
for policy in $policies; do
    [ "$policy" = None ] || holders="$holders$(holders_of "$policy")$newline"
done
holders=$(printf '%s' "$holders" | sort -u | sed '/^$/d; /^None$/d')

if [ -n "$importers$holders" ]; then
    echo "Nothing was deleted. In the way of deleting the stack $stack:"
    for each in $importers; do
        echo "  the stack $each imports from it; the first command is for one that is protected:"
        echo "    $aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name $each"
        echo "    $aws cloudformation delete-stack --stack-name $each"
    done
    for each in $holders; do
        echo "  $each has one of its policies: delete the stack that it is of, or detach the policy"
    done
    exit 1
fi

if [ -z "${CONFIRM:-}" ]; then
    printf 'The stacks %s and %s-observability are to be deleted. The name of the first, to go on: ' "$stack" "$stack"
    read -r CONFIRM || true
fi
if [ "$CONFIRM" != "$stack" ]; then
    echo "Nothing was deleted. Where nobody can be asked: make destroy STACK=$stack CONFIRM=$stack"
    exit 1
fi

for each in "$stack-observability" "$stack"; do
    $aws cloudformation describe-stacks --stack-name "$each" >/dev/null 2>&1 || continue
    echo "Deleting the stack $each"
    $aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name "$each" >/dev/null
    $aws cloudformation delete-stack --stack-name "$each"
    $aws cloudformation wait stack-delete-complete --stack-name "$each"
done

case $resource in
# Its creation failed, so it never was the stack's; a table of its name belongs to somebody else.
CREATE_FAILED* | DELETE_COMPLETE*) echo "The stacks are gone. They had no table." && exit ;;
esac
table=${resource#*	}
echo "The stacks are gone. The table $table is kept with all its threads, and costs what it stores."
echo "To delete it for good:"
echo "  $aws dynamodb update-table --table-name $table --no-deletion-protection-enabled"
echo "  $aws dynamodb delete-table --table-name $table"
echo "  $aws dynamodb wait table-not-exists --table-name $table"
