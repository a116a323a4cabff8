# Every command a developer types. `make` alone lists them.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := $(VENV)/.packages
# The profile of Cargo with which the extension is built: in make test, dev, whose libraries are those of the Rust tests.
EXTENSION_PROFILE ?= local
EXTENSION := $(VENV)/.extension-$(EXTENSION_PROFILE)
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_CODE := python docs/conf.py docs/_ext tools benches tests/python tests/golden tests/ns3 tests/parity tests/vectors/tools tests/vectors/readers crates/py/tests
# What codespell and tools/banned_phrases.py read.
SPELLED := Makefile pyproject.toml $(wildcard *.md) docs papers crates include examples python tests benches tools
PLAIN_ENGLISH := Makefile pyproject.toml '*.md' docs papers crates include examples python tests benches tools
# Tests that print tables of docs/validation.
TCP_TESTS := micro_scenarios formulae random_loss survival congestion accurate_ecn l4s
QUIC_TESTS := quic_short quic_slow_start quic_flow_control quic_marks
# The file that maturin gives to pyo3; without it, each clippy would make Cargo compile the extension again.
PYO3 = $(addprefix PYO3_CONFIG_FILE=$(CURDIR)/,$(lastword $(sort $(wildcard target/maturin/pyo3-config-$(shell rustc --print host-tuple)-*))))
CLIPPY = $(PYO3) cargo clippy --workspace --all-targets --quiet -- -D warnings
# The columns of docs/validation/rfc7928.md.
RFC_QUEUES := codel pie fq_codel cobalt red cake
# The pages of docs/validation/rfc9743.md.
RFC_CONTROLS := cubic reno prague bbr3 copa
# The columns of the cases of Accurate ECN in docs/validation/cc_cases.md.
ACCECN_CONTROLS := cubic reno dctcp prague bbr3 bbr
# Tests that measure real packets, with nothing else running.
LIVE_TESTS := tests/python/live
# Of the scenarios that were measured on Linux 6.12.
KERNEL_OBJECTS := target/modules/kernel$(if $(DEBUG),-debug)
KERNEL_SCENARIOS := ^R[124]_|^R6_20m_100ms_1f|^R7_
# The crates for crates.io, and the oldest Rust that they support (rust-version).
PUBLISHED := net prefetch schema qdisc capture path
OLDEST_RUST := 1.88
DIR ?= results/residential/scenarios/rrul_10_1

.DEFAULT_GOAL := help
.PHONY: help compile compile-release compile-test wheel wheels audit generate worst-cases new-queue new-cc setup lock advisories-update deny demo paper cocoa test test-rust test-live docs-aside test-quick test-full kills sweep-kills live-kills golden golden-quick golden-platforms golden-update publish-check publish semver-check stacks studies studies-update studies-full schema check count duplicates fmt instructions instructions-update bench bench-update bench-ratios bench-live bench-agree bench-plugins bench-path bench-gym bench-store bench-lab bench-sweeps bench-dask bench-peers bench-peers-update parity parity-update reference reference-update ns3 ns3-update rfc7928 rfc7928-update rfc9743-update vectors vectors-ns3 soak fuzz sanitize mutants report wasm docs figures user-strings clean interop parity-measure parity-kernel modules modules-kernel modules-if-possible

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(EXTENSION) ## Create .venv with all development tools and build the extension.

$(PACKAGES): requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit("Sojourn needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	@echo 'creating the virtual environment $(VENV)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing the development tools into it: a minute the first time'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --requirement requirements-dev.lock
	@touch $@

$(EXTENSION): $(PACKAGES) $(SOURCES)
	@echo 'building the extension: minutes the first time, less after a change'
	@rm -f $(VENV)/.extension-*
	@CARGO_TERM_QUIET=true VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/python -m maturin develop --profile $(EXTENSION_PROFILE) --quiet > /dev/null
	@$(BIN)/python -c 'import sojourn._core'
	@touch $@

wheel: $(PACKAGES) ## Build a wheel in target/wheels, with a new profile: 10 minutes; needs llvm-tools (rustup component add llvm-tools).
	$(BIN)/python tools/pgo.py wheel

wheels: $(PACKAGES) ## Build the wheels of all platforms and the sdist in target/wheels; needs MinGW-w64; an hour of CPU time.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'cargo-zigbuild==0.24.1' 'pex==2.105.2' 'ziglang==0.17.1'
	$(BIN)/python tools/wheels.py
	$(MAKE) --no-print-directory audit

audit: ## Check the files in target/wheels with twine, auditwheel, abi3audit and pyroma, in an environment of their own.
	@test -x target/audit/bin/twine || $(PYTHON) -m venv target/audit
	@target/audit/bin/python -m pip install --quiet --disable-pip-version-check 'abi3audit==0.0.26' 'auditwheel==6.8.2' 'pyroma==5.0.1' 'twine==7.0.0'
	target/audit/bin/twine check --strict target/wheels/*.whl target/wheels/*.tar.gz
	target/audit/bin/abi3audit --strict target/wheels/*.whl
	@# It cannot read wheels for musl on a system without; tools/wheels.py checks which libraries those need.
	for wheel in target/wheels/*manylinux*.whl; do target/audit/bin/auditwheel show $$wheel > /dev/null || exit 1; done
	target/audit/bin/pyroma --file --min 8 $(wildcard target/wheels/*.tar.gz)

golden-platforms: setup ## Run the golden corpus on arm64 (qemu), musl and Windows (Wine), whose files it builds; takes long.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'cargo-zigbuild==0.24.1' 'pex==2.105.2' 'ziglang==0.17.1'
	$(BIN)/python tools/wheels.py linux-aarch64 program-x86_64 program-aarch64 program-windows
	$(BIN)/python tools/platforms.py

lock: ## Update requirements-dev.lock from pyproject.toml; needs uv.
	@uv --version > /dev/null 2>&1 || { echo 'make lock: python3 -m pip install uv'; exit 2; }
	uv pip compile pyproject.toml --quiet --upgrade --all-extras --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command 'make lock' --output-file requirements-dev.lock > /dev/null
	$(MAKE) --no-print-directory advisories-update

advisories-update: ## Download the advisories on locked dependencies from RustSec and PyPI, and which crates are yanked.
	$(PYTHON) tools/advisories.py --update

demo: setup ## Compare four queues on a home line: a few seconds.
	$(BIN)/sojourn demo

paper: setup ## Reproduce a published study: about a minute on two cores.
	$(BIN)/sojourn reproduce residential --force

cocoa: setup ## Reproduce the Cocoa paper: 40 s of CPU time.
	$(BIN)/sojourn reproduce cocoa --force

studies: setup ## Reproduce all published works in short runs; compare with the recorded verdicts: 10 minutes.
	$(BIN)/sojourn reproduce all --force --out target/studies > /dev/null
	$(BIN)/python tools/studies.py --compare target/studies

studies-update: setup ## The same, and record the verdicts, after a deliberate change of results.
	$(BIN)/sojourn reproduce all --force --out target/studies
	$(BIN)/python tools/studies.py --write target/studies --scale quick

studies-full: setup ## Reproduce all published works at full scale and record verdicts and figures: hours.
	$(BIN)/sojourn reproduce all --full --force --out target/studies-full
	$(BIN)/python tools/studies.py --write target/studies-full --scale full

# Cargo locks each profile by itself, and one crate at a time keeps one processor busy.
compile: ## Compile all that make test runs: optimised programs and WebAssembly beside tests and lints.
	@$(MAKE) --no-print-directory --jobs 2 compile-release compile-test

compile-release:
	cargo build --profile local --quiet -p sojourn-parity -p sojourn-bench --bin sojourn-parity --bin sojourn-bench
	@mkdir -p target
	@$(PYTHON) tools/lab.py

compile-test: setup
	cargo test --workspace --quiet --no-run
	$(CLIPPY)

test-quick: $(PACKAGES) ## Check and test the files that differ from main; run it after every change.
	@$(BIN)/python tools/quick.py

# Tests and checks that are skipped add their reason to this file.
test test-full: export SOJOURN_SKIPPED := $(CURDIR)/target/skipped.txt
# The optimised one would compile all libraries once more.
test compile: export EXTENSION_PROFILE := dev

test: compile ## Run all checks, all tests and the build of the documentation.
	@mkdir -p target && rm -f $(SOJOURN_SKIPPED)
	@# Most of these keep one processor busy, and tests wait for programs, timers and disks.
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target check reference instructions parity test-rust
	$(BIN)/python -m pytest --quiet -rs --numprocesses 3 --dist loadfile -m 'not slow' $(LIVE_TESTS:%=--ignore %)
	@# Live runs wait most of the time, and have priority.
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-live docs-aside
	@echo
	@$(PYTHON) tools/skipped.py 'make test' $(SOJOURN_SKIPPED)

test-rust:
	cargo test --workspace --quiet

test-live:
	$(BIN)/python -m pytest --quiet -rs $(LIVE_TESTS)

docs-aside:
	@$(if $(shell command -v chrt),chrt --idle 0,nice -n 19) $(MAKE) --no-print-directory docs

deny: ## Check licences, sources and second versions of all crates (deny.toml); needs cargo-deny.
	@cargo deny --version > /dev/null 2>&1 || { echo 'make deny: cargo install --locked cargo-deny'; exit 2; }
	cargo deny --locked check licenses sources bans

test-full: deny test publish-check golden golden-platforms stacks studies kills sweep-kills live-kills interop parity-kernel modules-if-possible ## Run make deny, test, publish-check, golden, golden-platforms, stacks, studies, interop, parity-kernel and all kills, and the tests that are too slow for make test.
	$(PYTHON) tools/check_skeletons.py
	cargo test --quiet -p sojourn-path-c -- --ignored
	$(BIN)/python tools/check_mutations.py
	$(BIN)/python -m pytest --quiet -rs --numprocesses 2 -m slow
	SOJOURN_ALL_QUEUES=1 $(BIN)/python -m pytest --quiet tests/python/rfc7928_suite/test_suite.py
	@echo
	@$(PYTHON) tools/skipped.py 'make test-full' $(SOJOURN_SKIPPED)

kills: setup ## Kill writers of runs and results at random times: 2 x 500 kills in Rust and 500 in Python.
	SOJOURN_KILLS=500 cargo test --quiet -p sojourn-store --test kills
	SOJOURN_KILLS=500 cargo test --quiet -p sojourn-lab --test kill
	SOJOURN_KILLS=500 $(BIN)/python -m pytest --quiet --timeout 900 tests/python/execute/test_kills.py

sweep-kills: setup ## Kill a sweep of 500 runs 200 times: the command, and workers of a cluster.
	SOJOURN_KILLS=200 $(BIN)/python -m pytest --quiet --timeout 3600 tests/python/sweeps/test_kills.py

live-kills: setup ## Start and stop 1,000 live runs and kill 200 of each kind at random times: nothing may remain.
	SOJOURN_CYCLES=1000 SOJOURN_KILLS=200 $(BIN)/python -m pytest --quiet -rs --timeout 1800 tests/python/live/test_ends.py \
		tests/python/live/test_internet.py tests/python/live/test_bridge.py tests/python/live/test_interop.py

interop: setup ## Run aioquic and ngtcp2 (apt-get: ngtcp2-client, ngtcp2-server) against each other over the scenarios of the QUIC interop runner, as root: 10 minutes.
	@mkdir -p target && rm -f target/interop.md
	SOJOURN_INTEROP=target/interop.md $(BIN)/python -m pytest --quiet -rs --timeout 600 tests/python/live/test_interop.py
	@test ! -e target/interop.md || cat target/interop.md

# Empty without cmake, which compiles BoringSSL, or without libclang, which its bindings need.
QUICHE = $(and $(shell command -v cmake),$(LIBCLANG_PATH)$(shell PATH="$$PATH:/sbin" ldconfig -p 2> /dev/null | grep 'libclang[-.0-9]*so'))

stacks: ## Run quinn-proto, smoltcp, s2n-quic and, with cmake and libclang, quiche, unmodified, over queues in virtual time: 20 s, and 8 minutes of CPU time to compile.
	@$(if $(QUICHE),,echo 'make stacks: quiche needs cmake and libclang' | tee -a "$${SOJOURN_SKIPPED:-/dev/null}")
	cd tests/stacks && CARGO_TARGET_DIR=../../target/stacks cargo test --locked --quiet --workspace $(if $(QUICHE),,--exclude sojourn-stacks-quiche) -- --nocapture --test-threads 1

publish-check: ## Build the packages for crates.io without a network, and check them with their oldest Rust; needs rustup.
	cargo package --offline --quiet --allow-dirty $(PUBLISHED:%=-p sojourn-%)
	CARGO_TARGET_DIR=target/oldest cargo +$(OLDEST_RUST) check --offline --quiet $(PUBLISHED:%=-p sojourn-%)

publish: ## Publish the packages of the current version on crates.io, of which a release consists; not for tests.
	cargo publish --locked $(PUBLISHED:%=-p sojourn-%)

semver-check: ## Compare the public items of the crates for crates.io with those of a tag: make semver-check BASELINE=v0.1.0; needs cargo-semver-checks.
	@test -n "$(BASELINE)" || { echo 'make semver-check BASELINE=v0.1.0: the tag of the last release'; exit 2; }
	@cargo semver-checks --version > /dev/null 2>&1 || { echo 'make semver-check: cargo install --locked cargo-semver-checks'; exit 2; }
	cargo semver-checks --baseline-rev $(BASELINE) $(PUBLISHED:%=-p sojourn-%)

golden: setup ## Compare the records of the golden corpus with the recorded ones.
	$(BIN)/python tests/golden/golden.py

golden-quick: setup ## The same with a part of the corpus: 8 s of CPU time.
	$(BIN)/python tests/golden/golden.py --quick

golden-update: setup ## Record the golden corpus again, after a deliberate change of results.
	$(BIN)/python tests/golden/golden.py --update

check: setup ## Check generated files, formatting, lints, types, spelling and phrases.
	$(PYTHON) tools/generate.py --check
	cargo fmt --all --check
	$(CLIPPY)
	$(BIN)/ruff format --check --quiet $(PYTHON_CODE)
	$(BIN)/ruff check --quiet $(PYTHON_CODE)
	$(BIN)/mypy
	MYPYPATH=tests/golden $(BIN)/mypy tests/golden/golden.py
	$(BIN)/mypy benches/python_queue.py benches/live.py benches/agreement.py benches/sweeps.py benches/cluster.py benches/instructions.py benches/gym.py benches/browser.py
	$(BIN)/mypy tests/parity/compact.py tests/parity/draw.py tests/ns3/record.py tests/vectors/readers/windows.py
	MYPYPATH=tests/ns3 $(BIN)/mypy tests/ns3/replay.py tests/vectors/readers/vectors.py tests/vectors/tools/windows.py
	$(BIN)/python -m mypy.stubtest sojourn._core
	$(BIN)/python tools/metrics_doc.py --check
	$(PYTHON) tools/performance.py
	$(BIN)/python tools/studies.py --check
	$(BIN)/python tools/worst_cases.py --check
	$(PYTHON) tools/advisories.py
	$(PYTHON) tools/third_party.py --check
	$(BIN)/codespell $(SPELLED)
	$(BIN)/python tools/banned_phrases.py $(PLAIN_ENGLISH)
	@$(BIN)/sojourn schema | cmp --quiet - docs/schema/scenario.schema.json \
		|| { echo 'docs/schema/scenario.schema.json is stale: run make schema'; exit 1; }

count: ## Count files and lines of the Python package and the crates; exit code 1 if a limit is missed.
	@$(PYTHON) tools/count.py

duplicates: ## Count duplicated blocks of at least six lines with jscpd (downloaded by npm), except in tests and generated files.
	@$(PYTHON) tools/duplicates.py

schema: setup ## Write the JSON Schema of scenario files, docs/schema/scenario.schema.json.
	$(BIN)/sojourn schema > docs/schema/scenario.schema.json

generate: ## Write all generated files again: docs, Python classes, seeds, schema.
	@echo 'compiling the catalogues and writing the files that derive from them: minutes the first time'
	@$(PYTHON) tools/generate.py
	@$(MAKE) --no-print-directory schema
	@$(BIN)/python tools/metrics_doc.py
	@$(PYTHON) tools/generate.py

new-queue: $(PACKAGES) ## Create the skeleton of a queue discipline: make new-queue NAME=foo; takes minutes.
	@test -n "$(NAME)" || { echo 'make new-queue NAME=foo: a name in lower case'; exit 2; }
	@$(BIN)/python tools/new.py queue $(NAME)
	@$(MAKE) --no-print-directory generate
	@echo "$(NAME) is ready: sojourn run --help, and make test-quick after a change"

new-cc: $(PACKAGES) ## Create the skeleton of a congestion control: make new-cc NAME=foo; takes minutes.
	@test -n "$(NAME)" || { echo 'make new-cc NAME=foo: a name in lower case'; exit 2; }
	@$(BIN)/python tools/new.py control $(NAME)
	@$(MAKE) --no-print-directory generate
	@echo "$(NAME) is ready: sojourn run --help, and make test-quick after a change"

fmt: setup ## Format Rust and Python.
	cargo fmt --all
	$(BIN)/ruff format $(PYTHON_CODE)

instructions: ## Count the instructions of short runs; fails if there are over 2 % more than recorded.
	$(PYTHON) benches/instructions.py

instructions-update: ## Record the instruction counts again, after a deliberate change.
	$(PYTHON) benches/instructions.py --update

bench: setup ## Measure the cost of the simulator (docs/validation/performance.md).
	$$($(BIN)/python tools/pgo.py bench)
	$(BIN)/python benches/python_queue.py --json target/bench.json

bench-update: bench ## The same, store the numbers and write the tables of docs/validation/performance.md.
	$(PYTHON) tools/performance.py --update target/bench.json

bench-ratios: $(PACKAGES) ## Compare the speed of the simulator with that of another commit: make bench-ratios BASE=COMMIT; 40 minutes, half of it to compile.
	@test -n "$(BASE)" || { echo 'make bench-ratios BASE=COMMIT: the commit to compare with'; exit 2; }
	$(BIN)/python tools/ratios.py $(BASE)

bench-live: setup ## Measure live runs: rates, delays, the fastest link (docs/validation/live.md); exit code 1 if a bound is missed; 4 minutes, as root.
	$(BIN)/python benches/live.py

bench-agree: setup ## Compare live and simulated runs of 8 kinds of traffic and 4 queues (docs/validation/live.md); 25 minutes.
	$(BIN)/python benches/agreement.py

bench-plugins: ## Measure what a plug-in costs more than the same queue built in (docs/adr/0034-queue-plugins.md); exit code 1 above 10 ns.
	cargo build --release --quiet -p sojourn-plugin --examples
	cargo build --release --quiet -p sojourn-bench --features plugins --bin plugins
	target/release/plugins target/release/examples

bench-path: ## Measure what a path costs more than its queue alone (docs/validation/performance.md); fails above 60 ns per packet; 10 s.
	cargo bench --quiet -p sojourn-path

bench-gym: setup ## Measure the steps per second of sojourn.gym (docs/howto/gym.md); exit code 1 below 100,000; 20 s.
	$(BIN)/python benches/gym.py

bench-store: ## Measure the run store (docs/adr/0016-run-store.md).
	@mkdir -p target/bench-store
	cargo run --release --quiet -p sojourn-store --bin run-store-load -- target/bench-store 100000 10000
	@rm -r target/bench-store

bench-sweeps: setup ## Measure a sweep of 10,000 short runs, and 10,000 runs of 70 s (docs/validation/performance.md); exit code 1 if a bound is missed; 4 minutes.
	cargo build --release --quiet -p sojourn-bench --bin engine
	$(BIN)/python benches/sweeps.py

bench-dask: setup ## Measure a sweep on four workers of Dask and on four threads (docs/validation/performance.md); exit code 1 if a bound is missed; 4 minutes.
	$(BIN)/python benches/cluster.py

bench-peers: setup ## Install ns-3 and ns-2 (apt-get, as root) and measure them and Sojourn on S1, S2, S3 and S5; 8 minutes.
	BENCH="$$($(BIN)/python tools/pgo.py bench)" RUNS=2 benches/peers/run.sh

bench-peers-update: bench-peers ## The same, store the numbers and write their table of docs/validation/performance.md.
	$(PYTHON) tools/performance.py --update target/peers.json

parity: ## Compare with Linux and, for QUIC, with quinn-proto; check the tables of docs/validation.
	@mkdir -p target/parity
	cargo run --profile local --quiet -p sojourn-parity -- --misses --require 0.994 --require-half 0.95 --require-stacks 0.95 --markdown target/parity/parity.md
	@# With the features of all crates, as the tests are built.
	cargo build --workspace --quiet --profile test --bin sojourn-quic-parity
	target/debug/sojourn-quic-parity --markdown target/parity/quic.md
	@$(PYTHON) tools/measured.py --target parity-update $(WRITE) docs/validation/parity.md target/parity/parity.md
	@$(PYTHON) tools/measured.py --target parity-update $(WRITE) docs/validation/quic.md target/parity/quic.md

parity-measure: ## Run scenarios of the comparison in the kernel again and write tests/parity/data: make parity-measure ONLY='^R1_10m' KERNEL=6.12 REPETITIONS=3; needs sojourn kernel build.
	@test -n "$(ONLY)" || { echo "make parity-measure ONLY='^R1_10m': the names of the scenarios"; exit 2; }
	cargo run --profile local --quiet -p sojourn-parity -- --kernel $(or $(KERNEL),6.12) --only '$(ONLY)' --again $(or $(REPETITIONS),3) --record

parity-kernel: setup ## Run 70 scenarios of the comparison in Linux 6.12 again, which it builds if needed, and compare with the recorded results: 10 minutes.
	@# User-Mode Linux needs this processor.
	@test "$$(uname -m)" = x86_64 || { echo 'make parity-kernel: needs Linux on x86-64'; exit 2; }
	$(BIN)/sojourn kernel build 6.12
	cargo test --quiet -p sojourn-kernel
	cargo run --profile local --quiet -p sojourn-parity -- --kernel 6.12 --only '$(KERNEL_SCENARIOS)' --again 1 --misses --require 0.97

parity-update: ## The same, and write the tables of docs/validation again.
	@$(MAKE) --no-print-directory parity WRITE=--write

reference: ## Run the tests that compare TCP with formulae and logs; check the tables of docs/validation.
	@mkdir -p target/reference
	cargo test --workspace --quiet $(TCP_TESTS:%=--test %) -- --nocapture --test-threads 1 > target/reference/tcp.txt
	cargo test --workspace --quiet $(QUIC_TESTS:%=--test %) -- --nocapture --test-threads 1 > target/reference/quic.txt
	@$(PYTHON) tools/measured.py --target reference-update $(WRITE) docs/validation/tcp.md target/reference/tcp.txt
	@$(PYTHON) tools/measured.py --target reference-update $(WRITE) docs/validation/quic.md target/reference/quic.txt

reference-update: ## The same, and write the tables again.
	@$(MAKE) --no-print-directory reference WRITE=--write

ns3: setup ## Compare WiFi with the recorded results of ns-3; check the table of docs/validation/wifi.md.
	@mkdir -p target/ns3
	$(BIN)/python tests/python/scenario/test_ns3_wifi.py > target/ns3/wifi.txt
	@$(PYTHON) tools/measured.py --target ns3-update $(WRITE) docs/validation/wifi.md target/ns3/wifi.txt

ns3-update: ## Install ns-3 (apt-get, as root), run and record its cases, and write the table again; 5 minutes.
	$(PYTHON) tests/ns3/record.py
	@$(MAKE) --no-print-directory ns3 WRITE=--write

rfc7928: setup ## Characterise all queues by RFC 7928, quick form: about 6 s of CPU time per queue.
	$(BIN)/sojourn rfc7928 all --out results/rfc7928

rfc7928-update: setup ## Measure the main queues and write docs/validation/rfc7928.md: about 40 s of CPU time.
	@mkdir -p target
	$(BIN)/sojourn rfc7928 $(RFC_QUEUES) --json --out target/rfc7928 > target/rfc7928.json
	$(BIN)/python tools/rfc7928.py target/rfc7928.json

rfc9743-update: setup ## Evaluate five controls and write docs/validation/rfc9743*.md: about 2 minutes of CPU time.
	@mkdir -p target
	$(BIN)/sojourn rfc9743 $(RFC_CONTROLS) --json --out target/rfc9743 > target/rfc9743.json
	$(BIN)/sojourn cc-cases bbr3 bbr cubic --json --out target/cc-cases > target/cc-cases.json
	$(BIN)/sojourn cc-cases $(ACCECN_CONTROLS) --family accecn --json --out target/cc-cases > target/accecn.json
	$(BIN)/python tools/rfc9743.py target/rfc9743.json target/cc-cases.json target/accecn.json

vectors: ## Record the test vectors of the kernel again: make vectors UML=path/to/linux
	@test -n "$(UML)" || { echo 'make vectors UML=path: a User-Mode Linux, see tests/vectors/README.md'; exit 2; }
	$(PYTHON) tests/vectors/tools/record.py --kernel $(UML)

modules-kernel: ## Build a User-Mode Linux for make modules in target/modules/kernel: make modules-kernel SOURCE=path/to/linux [DEBUG=1: with KASAN, lockdep and kmemleak]
	@test -n "$(SOURCE)" || { echo 'make modules-kernel SOURCE=path: a source of Linux, such as sojourn kernel build --keep-source leaves'; exit 2; }
	@mkdir -p $(KERNEL_OBJECTS)
	cat kernel/config $(if $(DEBUG),kernel/config.debug) > $(KERNEL_OBJECTS)/wanted
	$(MAKE) -s -C $(SOURCE) ARCH=um SUBARCH=x86_64 O=$(CURDIR)/$(KERNEL_OBJECTS) KCONFIG_ALLCONFIG=$(CURDIR)/$(KERNEL_OBJECTS)/wanted allnoconfig
	$(MAKE) -s -C $(SOURCE) ARCH=um SUBARCH=x86_64 O=$(CURDIR)/$(KERNEL_OBJECTS) -j2 linux modules

modules: ## Build the kernel modules and test them in User-Mode Linux: make modules UML='path/to/linux …' IPROUTE2=path/to/sources
	@test -n "$(UML)" -a -n "$(IPROUTE2)" || { echo "make modules UML='path …' IPROUTE2=path: see kernel/README.md"; exit 2; }
	$(PYTHON) tools/kernel_modules.py $(UML) --iproute2 $(IPROUTE2) --packets $(or $(PACKETS),100000)

modules-if-possible:
	@if test -n "$(UML)" -a -n "$(IPROUTE2)"; then $(MAKE) --no-print-directory modules; \
		else echo 'make modules: no User-Mode Linux (UML=… IPROUTE2=…)' >> "$(SOJOURN_SKIPPED)"; fi

vectors-ns3: $(PACKAGES) ## Install ns-3 (apt-get, as root), replay the test vectors on its queue discs and write docs/validation/vectors.md.
	@mkdir -p target/ns3
	$(BIN)/python tests/ns3/replay.py > target/ns3/vectors.txt
	@$(PYTHON) tools/measured.py --target vectors-ns3 --write docs/validation/vectors.md target/ns3/vectors.txt

soak: setup ## Run the random tests with new seeds: make soak MINUTES=10
	$(BIN)/python tools/soak.py --minutes $(or $(MINUTES),10)

fuzz: ## Fuzz queues, scenarios, results and packets, one minute per target; needs nightly Rust and cargo-fuzz.
	@cargo +nightly fuzz --version > /dev/null 2>&1 || { echo 'make fuzz: rustup toolchain install nightly && cargo install cargo-fuzz'; exit 2; }
	mkdir -p crates/qdisc/fuzz/corpus/qdisc
	cd crates/qdisc && cargo +nightly fuzz run qdisc fuzz/corpus/qdisc fuzz/seeds -- -max_total_time=60
	cd crates/qdisc && cargo +nightly fuzz run spec -- -max_total_time=60
	mkdir -p crates/scenario/fuzz/corpus/scenario crates/lab/fuzz/corpus/manifest
	cd crates/scenario && cargo +nightly fuzz run scenario fuzz/corpus/scenario ../../tests/golden/scenarios -- -max_total_time=60
	cd crates/lab && cargo +nightly fuzz run manifest fuzz/corpus/manifest ../../tests/python/data/format_4 -- -max_total_time=60
	cd crates/lab && cargo +nightly fuzz run table -- -max_total_time=60
	cd crates/lab && cargo +nightly fuzz run any_table -- -max_total_time=60
	cd crates/live && cargo +nightly fuzz run frame -- -max_total_time=60 -max_len=2048
	cd crates/live && cargo +nightly fuzz run sock_diag -- -max_total_time=60 -max_len=2048

sanitize: ## Run the tests of live runs with the address sanitizer; needs nightly Rust, and root for all of them.
	RUSTFLAGS=-Zsanitizer=address cargo +nightly test --package sojourn-live --target-dir target/sanitize \
		--target $$(rustc --print host-tuple)

mutants: ## Mutation tests of the queues: make mutants FILE=aqm/codel.rs; needs cargo-mutants.
	@cargo mutants --version > /dev/null 2>&1 || { echo 'make mutants: cargo install cargo-mutants'; exit 2; }
	cargo mutants --package sojourn-qdisc $(if $(FILE),--file 'crates/qdisc/src/$(FILE)')

report: setup ## Write an HTML report on a saved result: make report DIR=results/…
	$(BIN)/sojourn report $(DIR)

worst-cases: setup ## Search for the worst case of each queue and write docs/qdiscs/worst-cases.md: minutes.
	$(BIN)/python tools/worst_cases.py --search

figures: setup ## Draw the figures of the documentation.
	$(BIN)/sojourn run papers/residential/rrul_10_1.toml --out results/rrul_10_1 --force
	mkdir -p docs/figures
	$(BIN)/sojourn plot results/rrul_10_1 --kind ellipse -o docs/figures/residential_10_1.png
	$(BIN)/python tests/parity/draw.py docs/figures

wasm: ## Build the simulator as WebAssembly, for the lab of the documentation; needs rustup, or its target wasm32-unknown-unknown.
	@$(PYTHON) tools/lab.py

bench-lab: setup wasm ## Measure the lab in Node and in Chromium (docs/validation/performance.md); exit code 1 below 20 times real time; 1 minute.
	$(BIN)/python benches/browser.py

docs: setup wasm ## Build the documentation site in target/site.
	$(PYO3) RUSTDOCFLAGS='-D warnings -A rustdoc::private_intra_doc_links' cargo doc --workspace --no-deps --quiet
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --jobs auto \
		--conf-dir docs --doctree-dir target/doctrees . target/site
	@echo 'documentation: target/site/index.html'

user-strings: setup ## List all texts that users read, for a language review.
	@$(BIN)/python tools/user_strings.py

clean: ## Remove all build products; results are kept.
	cargo clean
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache docs/reference/generated
	find python -name '_core*.so' -delete
