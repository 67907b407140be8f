# What people do with this project. `make` alone lists it.

PYTHON ?= python3
OUT ?= out

# Every tool, Rust's included, is found in .venv/bin, where scripts/setup.py puts it.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: check-release wheel sdist test-wheel publish-crates package help setup reproduce reproduce-full test test-fast lint lint-python lint-rust test-rust test-python bench chaos fuzz bpf validate soak readme docs lock clean bench-sweep bench-testbed test-kills test-kernel explore

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; \
	do printf 'make %-12s %s\n' "$$name" "$$what"; done

setup: ## Installs what is missing and builds the engine, into .venv
	@$(PYTHON) scripts/setup.py

reproduce: setup ## Reproduces every built-in paper into OUT (out) and says where the report is
	@.venv/bin/dumbbell reproduce all --out "$(OUT)"

reproduce-full: setup ## Runs also what explains results and goes beyond the papers; an hour
	@.venv/bin/dumbbell reproduce all --full --out "$(OUT)"

test: lint test-rust test-python ## Runs the linters and every test

test-fast: lint-python ## Runs what is quick of the Python linters and tests, in a minute
	$(PYTEST) -m 'not slow and not alone' $(PARALLEL)

lint: lint-python lint-rust ## Checks format, lints, types and the order of layers

lint-python: setup
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache

lint-rust: setup
	.venv/bin/cargo fmt --all --check
	@if .venv/bin/cargo clippy --version 2>/dev/null; then \
	  .venv/bin/cargo clippy --locked --quiet --workspace --all-targets -- -D warnings; \
	else echo 'cargo clippy: skipped, the Rust of this machine comes without it'; fi

test-rust: setup ## Runs the engine's tests
	@$(PYTHON) scripts/setup.py --test-peers
	.venv/bin/cargo test --locked --quiet --workspace

PYTEST = PYTHONHASHSEED=0 .venv/bin/pytest
# A file's tests stay together: they share what was run once for all of them.
PARALLEL = --numprocesses auto --dist loadscope --no-loadscope-reorder

test-python: setup ## Runs the Python tests, one a core; then those that need the machine alone
	$(PYTEST) -m 'not alone' $(PARALLEL)
	$(PYTEST) -m alone

MINUTES ?= 30

explore: setup ## Runs the property tests with new seeds for MINUTES (30); prints how to repeat a failure
	.venv/bin/python scripts/explore.py --minutes $(MINUTES)

test-kernel: setup ## Tries the algorithms for the kernel on real packets, as root, for some minutes
	.venv/bin/pytest tests/kernel

bench: setup ## Measures the engine's speed, in packets per second
	.venv/bin/cargo bench --locked --workspace --bench '*'

.PHONY: bench-instructions
bench-instructions: setup ## Fails if the engine takes 3 % more instructions per packet (needs valgrind)
	.venv/bin/python scripts/instructions.py $(if $(STRICT),--strict)

bench-testbed: setup ## Measures the testbed's emulator: rates, lateness, processor time; as root
	.venv/bin/python scripts/bench_testbed.py

RUNS ?= 10000

bench-sweep: setup ## Measures a sweep of RUNS (10,000) short runs, and its heat map
	.venv/bin/python scripts/bench_sweep.py $(RUNS)

KILLS ?= 50

test-kills: setup ## Kills a sweep KILLS (50) times at random moments; it must lose nothing
	KILLS=$(KILLS) .venv/bin/pytest -q tests/python/test_sweeps.py -k killed

chaos: setup ## Sends data over very bad paths and floods a UDT server, for minutes
	.venv/bin/cargo test --locked --package dumbbell-udt --test sockets -- --ignored --nocapture
	.venv/bin/cargo test --locked --package dumbbell-udt --test sockets -- hostile
	.venv/bin/cargo test --locked --package dumbbell-transfer --test transfers -- hostile

INPUTS ?= 10000000

fuzz: setup ## Gives INPUTS (10 million) arbitrary inputs to what reads from the network
	.venv/bin/cargo run --locked --profile fuzz --quiet --package dumbbell-fuzz --bin udt-codec -- $(INPUTS)
	.venv/bin/cargo run --locked --profile fuzz --quiet --package dumbbell-fuzz --bin bulk-engine -- $(INPUTS)
	.venv/bin/cargo run --locked --profile fuzz --quiet --package dumbbell-fuzz --bin udt-engine -- $(INPUTS)
	.venv/bin/cargo run --locked --profile fuzz --quiet --package dumbbell-fuzz --bin udt-noise -- $(INPUTS)
	.venv/bin/cargo run --locked --profile fuzz --quiet --package dumbbell-fuzz --bin transfer-peer -- $(INPUTS)

bpf: setup ## Compiles the eBPF programs into the objects that are shipped
	.venv/bin/python scripts/bpf.py

validate: setup ## Compares 132 cells with real packets, as root; some hours; resumes
	.venv/bin/dumbbell validate --out "$(OUT)/validation"

.PHONY: validate-quick
validate-quick: setup ## Compares a third of the cells once, as root; 20 minutes
	.venv/bin/dumbbell validate --quick --out "$(OUT)/validation"

.PHONY: references
references: setup ## Compares algorithms with Linux's modules again (needs linux-source-6.12); 15 minutes
	.venv/bin/python scripts/references/kernel.py scripts/references
	.venv/bin/python scripts/pages/references_page.py docs

soak: setup ## Runs with real packets 100 times, kills 20 more, looks for what is left; as root
	.venv/bin/python scripts/testbed_soak.py

readme: setup ## Runs the examples of the documents again; puts in output and tables
	.venv/bin/python scripts/documents.py

.PHONY: figures
figures: setup ## Draws the figures and screenshots of the documents again (needs Chromium)
	.venv/bin/python scripts/figures.py

docs: setup ## Builds the documentation as a site, into site/
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict

lock: setup ## Brings requirements.lock up to date with pyproject.toml
	.venv/bin/python -m pip install --quiet uv
	.venv/bin/uv pip compile pyproject.toml --group dev --extra dask --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --quiet --output-file requirements.lock

.PHONY: lab
lab: setup ## Builds the laboratory's page (needs npm and Rust's target wasm32-unknown-unknown)
	.venv/bin/python scripts/lab.py

.PHONY: bench-lab
bench-lab: setup ## Measures the laboratory's engine in Chromium beside the native one, in turn
	.venv/bin/python scripts/bench_lab.py

.PHONY: test-lab
test-lab: setup ## Tests the laboratory in Node and in Chromium, as far as they are installed
	$(PYTEST) $(PARALLEL) tests/python/test_lab*.py

.PHONY: licences
licences: setup ## Writes the licences of the Rust libraries in the wheel again
	.venv/bin/python scripts/licences.py

.PHONY: assets
assets: ## Fetches again what report pages embed (needs npm)
	scripts/assets.sh

wheel: setup ## Builds the wheel for Linux (manylinux; elsewhere for this system) into dist/
	.venv/bin/python -m pip install --quiet --require-hashes --requirement requirements-linker.lock
	.venv/bin/maturin build --release --locked --out dist \
	  $(if $(filter Linux,$(shell uname)),--zig --compatibility manylinux_2_28,)

sdist: setup ## Builds the source package into dist/
	.venv/bin/maturin sdist --out dist

test-wheel: setup ## Installs the wheel of dist/ without a compiler, to a first table and figure
	@set -- dist/*.whl; test $$# = 1 && test -f "$$1" || \
	  { echo 'dist/ must have exactly one wheel; rm dist/*.whl, make wheel' >&2; exit 1; }
	DUMBBELL_WHEEL="$$(echo dist/*.whl)" $(PYTEST) -s tests/python/test_wheel.py

PUBLISHED = units cc net tcp udt sim quinn quic

package: setup ## Packages the crates for others and builds each from its package; cc without std
	.venv/bin/cargo package --locked $(PUBLISHED:%=--package dumbbell-%)
	@target=thumbv7em-none-eabi; \
	if [ -d "$$(rustc --print target-libdir --target $$target)" ]; then \
	  .venv/bin/cargo check --locked --quiet --package dumbbell-cc --target $$target; \
	else echo "dumbbell-cc without std: skipped; rustup target add $$target"; fi

check-release: ## Checks the workflows (needs Go) and CITATION.cff
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
	$(PYTHON) -m venv target/cff && target/cff/bin/pip install --quiet cffconvert==2.0.0
	target/cff/bin/cffconvert --validate

publish-crates: setup ## Publishes what is not published yet of the crates, in order; needs a token
	@version=$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml); \
	for crate in $(PUBLISHED:%=dumbbell-%); do \
	  if .venv/bin/cargo info --quiet --registry crates-io "$$crate@$$version" >/dev/null 2>&1; \
	  then echo "$$crate $$version is published"; \
	  else .venv/bin/cargo publish --locked --package "$$crate" || exit 1; fi; \
	done

clean: ## Removes the environment and everything built; results stay
	rm -rf .venv target dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f python/dumbbell/_core*.so
