# Commands for people and for CI; each sets up what it needs. `make help` lists them.
RUN := .venv
DEV := .venv-dev
JOB ?= statemachines/examples/digits/job.yaml
RUNS ?= 25
SEEDS ?= 200000
MUTATIONS ?= 100000
CONTEXT ?=
CDK := npx --yes aws-cdk@2 --app "$(DEV)/bin/python -m infra.app"

.DEFAULT_GOAL := help
.PHONY: help run test soak mutants lint lock golden clean chaos bench synth idle deploy destroy lab lab-smoke lab-run lab-bench

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18

run: $(RUN)/ready ## set up and run the example job on this machine (JOB=path for your own)
	@$(RUN)/bin/headrace run $(JOB)

test: $(DEV)/ready ## set up and run every test
	$(DEV)/bin/pytest --numprocesses 3 --dist loadscope

soak: $(DEV)/ready ## simulate SEEDS runs under random faults, and every single fault at every call
	$(DEV)/bin/python -m tests.simulation.single --all
	HEADRACE_SEEDS=$(SEEDS) $(DEV)/bin/pytest --numprocesses 3 --dist loadscope tests/simulation/test_seeds.py

chaos: $(DEV)/ready ## kill one process of each of RUNS real runs, 100 agents at failpoints, and read MUTATIONS broken job files
	$(DEV)/bin/python -m tests.chaos.agent_kills --runs 100
	$(DEV)/bin/python -m tests.chaos.soak --runs $(RUNS)
	HEADRACE_MUTATIONS=$(MUTATIONS) $(DEV)/bin/pytest tests/security/test_mutated_jobs.py -rP

bench: $(DEV)/bench-ready ## measure planning, the copy against other tools (BENCH=options), a job's end to its machines' release, and simulated runs
	$(DEV)/bin/python bench/plan.py
	$(DEV)/bin/python -m bench.staging $(BENCH)
	$(DEV)/bin/python -m bench.inspect_dataset
	$(DEV)/bin/python -m bench.agent_memory
	$(DEV)/bin/python bench/release.py
	$(DEV)/bin/python -m bench.simulation

mutants: $(DEV)/ready ## plant bugs in copies of the product and see that the simulation notices each (ONLY=name for one)
	$(DEV)/bin/python -m tests.mutants.run $(if $(ONLY),--only $(ONLY))

lab: $(DEV)/ready ## run the documents on real kernels in virtual machines: every layout, loss and repair (ONLY=expression)
	.ci/lab $(DEV)/bin/pytest tests/lab --ignore tests/lab/test_run.py --numprocesses 3 --dist load $(AGAIN) $(if $(ONLY),-k "$(ONLY)")

lab-smoke: $(DEV)/ready ## the shortest whole way in virtual machines: filled, sealed, read by two, undone
	.ci/lab $(DEV)/bin/pytest tests/lab/test_smoke.py

lab-run: $(DEV)/ready ## run the digits example from job file to receipt, its nodes virtual machines
	.ci/lab $(DEV)/bin/pytest tests/lab/test_run.py

lab-bench: $(DEV)/ready ## print how set-up and release take their time as volumes grow, in virtual machines
	.ci/lab $(DEV)/bin/python -m tests.lab.bench

lint: $(DEV)/ready .ci/node_modules/ready ## ruff, mypy strict, asl-validator
	$(DEV)/bin/ruff check
	$(DEV)/bin/ruff format --check
	$(DEV)/bin/mypy
	for file in statemachines/*.asl.json; do .ci/node_modules/.bin/asl-validator --json-path $$file || exit 1; done

golden: $(DEV)/ready ## write the golden files anew from what the code does now
	$(DEV)/bin/pytest --update-golden

lock: $(DEV)/ready ## write the lock files anew from pyproject.toml
	$(DEV)/bin/python scripts/lock.py

synth: $(DEV)/ready ## write the CloudFormation templates of the default stack to build/cloud
	@CDK_OUTDIR=build/cloud $(DEV)/bin/python -m infra.app

idle: synth ## print what the default stack costs in a month in which it runs nothing
	@$(DEV)/bin/python -m infra.idle_cost build/cloud/headrace-us-east-1.template.json

deploy: $(DEV)/ready ## deploy to the AWS account of your credentials (CONTEXT="-c stack=lab"); also upgrades
	$(CDK) deploy --all $(CONTEXT)

destroy: $(DEV)/ready ## delete the stacks; refused while runs live
	$(CDK) destroy --all $(CONTEXT)

clean: ## remove what the commands above made in this folder
	rm -rf $(RUN) $(DEV) .ci/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(RUN)/ready: .ci/venv .ci/run.lock pyproject.toml
	@.ci/venv $(RUN) .ci/run.lock
	@touch $@

$(DEV)/ready: .ci/venv .ci/dev.lock pyproject.toml
	@.ci/venv $(DEV) .ci/dev.lock
	@touch $@

$(DEV)/bench-ready: $(DEV)/ready
	$(DEV)/bin/pip install --quiet --disable-pip-version-check --group bench
	@touch $@

.ci/node_modules/ready: .ci/package-lock.json
	npm ci --prefix .ci --no-audit --no-fund --silent
	@touch $@
