# Checks and deploys the templates of this folder. Included by the Makefile, whose variables it uses.

VENV_INFRA := .venv-infra
TEMPLATES := $(wildcard infra/*.yaml infra/examples/*/template.yaml)
EXAMPLE_FOLDERS := infra/examples:infra/examples/lambda-agent:infra/examples/ecs-agent

AWS ?= aws
# The stack of the table. The stacks beside it are named after it, and import what it exports.
STACK ?= langgraph-checkpoints
# The stack that tenants, gateways and sample agents import from: another one once the table was restored or moved.
TABLE_STACK ?= $(STACK)
# Parameters of the templates, as "Name=value Name=value"; what is not named keeps its value, or its default.
PARAMETERS ?=
OBSERVABILITY_PARAMETERS ?=
TENANT ?=
TENANT_PARAMETERS ?=
LAMBDA_PARAMETERS ?=
ECS_PARAMETERS ?=
GATEWAY_PARAMETERS ?=
# The role of CloudFormation, and the permissions boundary of the roles that stacks and `make smoke` make: outputs of the
# stack of access.yaml. Without them, whoever deploys needs the rights of both.
SERVICE_ROLE ?=
BOUNDARY ?=
# Tags of every stack, as "Key=value Key=value"; CloudFormation hands them on to what the stack has.
TAGS ?=
# What the packages for Lambda are made for; an arm64 function needs aarch64-manylinux_2_28.
LAMBDA_PLATFORM ?= x86_64-manylinux_2_28
LAMBDA_PYTHON ?= 3.13
# For `call`, whose arguments commas divide.
comma := ,
# What compiles the package's modules, which it has to be of the function's version for; without it they stay sources.
LAMBDA_COMPILER ?= python$(LAMBDA_PYTHON)
LAMBDA_PACKAGE = build/lambda-agent-$(LAMBDA_PYTHON)-$(LAMBDA_PLATFORM)
GATEWAY_PACKAGE = build/gateway-$(LAMBDA_PYTHON)-$(LAMBDA_PLATFORM)

DEPLOY = $(AWS) cloudformation deploy --no-fail-on-empty-changeset --capabilities CAPABILITY_IAM \
	$(if $(SERVICE_ROLE),--role-arn $(SERVICE_ROLE)) $(if $(TAGS),--tags $(TAGS))
BOUNDED = $(if $(BOUNDARY),PermissionsBoundaryArn=$(BOUNDARY))
# A stack's name takes letters, digits and hyphens only, and a tenant's more; a digest keeps those apart that look alike.
TENANT_STACK = $(STACK)-tenant-$(shell $(PYTHON) -c 'import hashlib, re, sys; name = sys.argv[1]; \
	plain = re.sub("[^A-Za-z0-9-]", "-", name); digest = hashlib.sha256(name.encode()).hexdigest()[:8]; \
	print(plain if plain == name and len(name) <= 60 else f"{plain[:60]}-{digest}")' '$(TENANT)')
# What is protected from deletion is in the way when a creation that failed is taken back, so protection comes after it.
# Whatever an interrupted run left, the next one protects, unless the parameters say otherwise. Takes the stack, its
# template and its parameters, among which DeletionProtection may be.
define DEPLOY_PROTECTED
	state=$$($(AWS) cloudformation describe-stacks --stack-name $(1) --output text --query 'Stacks[0].StackStatus' 2>&1) || \
	case $$state in *'does not exist'*) state=NONE ;; *) echo "$$state" >&2; exit 1 ;; esac; \
	case $$state in \
	NONE | REVIEW_IN_PROGRESS) \
		$(DEPLOY) --stack-name $(1) --template-file $(2) --parameter-overrides $(3) DeletionProtection=false ;; \
	CREATE_IN_PROGRESS) $(AWS) cloudformation wait stack-create-complete --stack-name $(1) ;; \
	UPDATE_*IN_PROGRESS) $(AWS) cloudformation wait stack-update-complete --stack-name $(1) ;; \
	esac && $(DEPLOY) --stack-name $(1) --template-file $(2) --parameter-overrides DeletionProtection=true $(3)
endef
PROTECT = $(AWS) cloudformation update-termination-protection --enable-termination-protection --stack-name
OUTPUTS = $(AWS) cloudformation describe-stacks --output text --query

.PHONY: infra-check infra-lint infra-types infra-constraints deploy preflight smoke evening deploy-tenant deploy-lambda-agent deploy-ecs-agent \
	deploy-gateway deploy-gateway-ecs gateway destroy

# The tests of the last line are among those of `make test-all`.
infra-check: infra-lint infra-types
	$(BIN)/python -m pytest --quiet -m "not search" tests/documents/test_deploy.py

infra-lint: $(VENV)/.installed $(VENV_INFRA)/.installed
	$(BIN)/cfn-lint --include-checks I --template $(TEMPLATES)
	$(VENV_INFRA)/bin/checkov --directory infra --framework cloudformation dockerfile --quiet --compact --skip-download

# After the types of everything else, since the two share a cache.
infra-types: types
	MYPYPATH=$(EXAMPLE_FOLDERS) $(BIN)/mypy $(wildcard infra/*.py) $(wildcard infra/examples/*.py infra/examples/*/*.py)

# checkov has an environment of its own: it takes boto3 and others back to versions that the saver does not run with. The
# AWS CLI is in it for the tests.
$(VENV_INFRA)/.installed: constraints/infra.txt $(VENV)/.installed
	test -x $(VENV_INFRA)/bin/python || $(PYTHON) -m venv $(VENV_INFRA)
	$(BIN)/uv pip install --quiet --python $(VENV_INFRA)/bin/python --requirement constraints/infra.txt
	touch $@

COMPILE_INFRA = $(BIN)/uv pip compile - --universal --python-version 3.10 --quiet --upgrade --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make infra-constraints" --output-file
infra-constraints: $(VENV)/.installed
	printf "checkov\nawscli\n" | $(COMPILE_INFRA) constraints/infra.txt

deploy:
	$(call DEPLOY_PROTECTED,$(STACK),infra/table.yaml,$(PARAMETERS))
	$(PROTECT) $(STACK) >/dev/null
	$(DEPLOY) --stack-name $(STACK)-observability --template-file infra/observability.yaml \
		--parameter-overrides TableStackName=$(STACK) $(OBSERVABILITY_PARAMETERS)
	$(PROTECT) $(STACK)-observability >/dev/null
	@$(OUTPUTS) 'Stacks[0].Outputs[].[OutputKey,OutputValue]' --stack-name $(STACK)

# ENDPOINT is an emulator of AWS on this machine, or an engine of DynamoDB.
AT = $(if $(ENDPOINT),AWS_ENDPOINT_URL=$(ENDPOINT))

# What a deployment would meet in the account; it changes nothing.
preflight: $(VENV)/.installed
	@$(AT) $(BIN)/python -m infra.preflight --aws "$(AWS)" --service-role "$(SERVICE_ROLE)" --boundary "$(BOUNDARY)" \
		$(STACK) $(PARAMETERS) $(GATEWAY_PARAMETERS)

# The doctor of a deployment. TABLE=name is for a table without a stack; SMOKE="--only saver", SMOKE=--slow.
SMOKE ?=
smoke: $(VENV)/.installed
	@$(AT) $(BIN)/python -m infra.smoke $(if $(TABLE),--table $(TABLE),$(STACK)) $(if $(BOUNDARY),--boundary $(BOUNDARY)) $(SMOKE)

# All of it, once, in an account of AWS: what no emulator shows. BUCKET=name is for the gateway's package.
EVENING ?= $(STACK)-evening
evening: $(VENV)/.installed
	@$(AT) $(BIN)/python -m infra.evening $(EVENING)

deploy-tenant:
	$(if $(TENANT),,$(error Say which tenant: make deploy-tenant TENANT=name))
	$(DEPLOY) --stack-name $(TENANT_STACK) --template-file infra/tenant.yaml \
		--parameter-overrides TableStackName=$(TABLE_STACK) Tenant=$(TENANT) $(TENANT_PARAMETERS)
	@$(OUTPUTS) 'Stacks[0].Outputs[].[OutputKey,OutputValue]' --stack-name $(TENANT_STACK)

# The package's own code with one of its extras, and whatever else pip is told, as Lambda loads it.
define INSTALL_FOR_LAMBDA
	rm -rf $(1) $(1).zip build/wheels
	$(BIN)/uv build --quiet --wheel --out-dir build/wheels
	$(BIN)/uv pip install --quiet --target $(1) --python-version $(LAMBDA_PYTHON) \
		--python-platform $(LAMBDA_PLATFORM) --only-binary :all: --constraint constraints/aioboto3.txt \
		"$$(echo build/wheels/*.whl)[$(2)]" $(3)
endef
define ZIP_FOR_LAMBDA
	@# Never compared with the sources: those have other times once Lambda has unpacked them.
	@if $(LAMBDA_COMPILER) -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(LAMBDA_PYTHON)")' 2>/dev/null; then \
		$(LAMBDA_COMPILER) -m compileall -q --invalidation-mode unchecked-hash $(1); \
	else \
		echo "There is no Python $(LAMBDA_PYTHON) here to compile modules with (LAMBDA_COMPILER): each cold start will."; \
	fi
	chmod -R a+rX $(1)
	cd $(1) && $(abspath $(BIN))/python -m zipfile -c $(abspath $(1).zip) *
endef
# A key that follows from the package's content is what makes CloudFormation notice a new package.
define DEPLOY_ON_LAMBDA
	$(if $(BUCKET),,$(error Say where to upload the package: make $@ BUCKET=name))
	key=langgraph-dynamodb/$$($(BIN)/python -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())' \
		< $(1)).zip && \
	$(AWS) s3 cp $(1) s3://$(BUCKET)/$$key && \
	$(DEPLOY) --stack-name $(2) --template-file $(3) \
		--parameter-overrides TableStackName=$(TABLE_STACK) CodeBucket=$(BUCKET) CodeKey=$$key \
		Runtime=python$(LAMBDA_PYTHON) $(BOUNDED) $(4)
	@$(OUTPUTS) 'Stacks[0].Outputs[].[OutputKey,OutputValue]' --stack-name $(2)
endef
LAMBDA_SOURCES = $(VENV)/.installed $(shell find langgraph -name '*.py') constraints/aioboto3.txt

$(LAMBDA_PACKAGE).zip: $(LAMBDA_SOURCES) $(wildcard infra/examples/*.py infra/examples/lambda-agent/*.py) \
		infra/examples/requirements.txt
	$(call INSTALL_FOR_LAMBDA,$(LAMBDA_PACKAGE),aioboto3,--requirement infra/examples/requirements.txt)
	cp infra/examples/agent.py infra/examples/lambda-agent/handler.py $(LAMBDA_PACKAGE)
	$(call ZIP_FOR_LAMBDA,$(LAMBDA_PACKAGE))

deploy-lambda-agent: $(LAMBDA_PACKAGE).zip
	$(call DEPLOY_ON_LAMBDA,$<,$(STACK)-lambda-agent,infra/examples/lambda-agent/template.yaml,$(LAMBDA_PARAMETERS))

$(GATEWAY_PACKAGE).zip: $(LAMBDA_SOURCES)
	$(call INSTALL_FOR_LAMBDA,$(GATEWAY_PACKAGE),aioboto3$(comma)gateway-lambda$(comma)vectors)
	$(call ZIP_FOR_LAMBDA,$(GATEWAY_PACKAGE))

# PRINCIPALS is a file that says who may call; docs/gateway.md has one.
PRINCIPALS ?=
deploy-gateway: $(GATEWAY_PACKAGE).zip
	$(if $(PRINCIPALS),,$(error Say who may call: make deploy-gateway PRINCIPALS=principals.yaml; see docs/gateway.md))
	@test $$(wc -m < $(PRINCIPALS)) -le 3000 || { echo "$(PRINCIPALS) has more than 3,000 characters, which is what" \
		"fits beside a function. See \"How many callers fit\" in docs/gateway.md." >&2; exit 1; }
	$(call DEPLOY_ON_LAMBDA,$<,$(STACK)-gateway,infra/gateway.yaml,"Principals=$$(cat $(PRINCIPALS))" $(GATEWAY_PARAMETERS))
	$(PROTECT) $(STACK)-gateway >/dev/null

deploy-gateway-ecs:
	$(if $(GATEWAY_PARAMETERS),,$(error Give GATEWAY_PARAMETERS="Image=... VpcId=... CertificateArn=..."; see docs/gateway.md))
	$(call DEPLOY_PROTECTED,$(STACK)-gateway-ecs,infra/ecs.yaml,TableStackName=$(TABLE_STACK) $(BOUNDED) $(GATEWAY_PARAMETERS))
	$(PROTECT) $(STACK)-gateway-ecs >/dev/null
	@$(OUTPUTS) 'Stacks[0].Outputs[].[OutputKey,OutputValue]' --stack-name $(STACK)-gateway-ecs

# The service, its table and an engine on this machine, for as long as it runs; PORT=8080 is a port that stays the same.
PORT ?= 0
gateway: engine
	@$(BIN)/python -m tools.engine run sh -c '$(BIN)/langgraph-dynamodb setup --table langgraph-checkpoints && \
		exec $(BIN)/langgraph-dynamodb gateway --table langgraph-checkpoints --insecure --port $(PORT)'

deploy-ecs-agent:
	$(if $(ECS_PARAMETERS),,$(error Give ECS_PARAMETERS="Image=... VpcId=... CertificateArn=..."; see docs/deploy.md))
	$(DEPLOY) --stack-name $(STACK)-ecs-agent --template-file infra/ecs.yaml \
		--parameter-overrides TableStackName=$(TABLE_STACK) DeletionProtection=false $(BOUNDED) $(ECS_PARAMETERS)

# Asks for the stack's name; CONFIRM=name answers.
CONFIRM ?=
destroy:
	@AWS='$(AWS)' CONFIRM='$(CONFIRM)' sh infra/destroy.sh $(STACK)
