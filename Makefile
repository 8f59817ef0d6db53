# Each target makes .venv and installs what it needs when that is missing, and is quick the second time.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# More workers than there are cores: a test that waits for a browser or another process leaves its core idle.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
SPREAD := -n $(WORKERS) --dist worksteal
# What tests write lies in memory where there is room: libraries wait for the disk at each step, and waiting costs too.
MEMORY = $(shell grep -q ' /dev/shm .*noexec' /proc/mounts || df -Pk /dev/shm | awk '$$6 == "/dev/shm" && $$4 > 4000000 { print $$6 }')
TMPDIR ?= $(or $(if $(filter Linux,$(shell uname -s)),$(MEMORY)),/tmp)
PYTEST := TMPDIR=$(TMPDIR) $(BIN)/python -m pytest --durations 20
# Some tests start processes; each would compile the package anew where this is set.
unexport PYTHONDONTWRITEBYTECODE
# There are more processes than cores already: threads of their own would only wait for each other, and spin.
test test-all test-quick: export OMP_NUM_THREADS ?= 1
test test-all test-quick: export OPENBLAS_NUM_THREADS ?= 1

# Types are checked while the tests run, which wait at times, and what was found is said after them. A machine that
# begins anew each time keeps no cache of them, which takes a fifth of the time to write.
with-types = @mkdir -p artefacts; $(BIN)/mypy $(if $(CI),--cache-dir=/dev/null) >artefacts/types.txt 2>&1 & types=$$!; trap "kill $$types" INT TERM; \
	$(1); tests=$$?; wait $$types; typed=$$?; cat artefacts/types.txt; exit $$((tests || typed))

.PHONY: demo test test-all test-quick coverage lint style bench fuzz sanitize audit clean install-locked lock native tables docs docs-serve pictures

# The models for searching without a network, once per user; without a connection, those that are here are used.
get-models = @$(BIN)/momentseek models get --yes >/dev/null || echo "going on with the models that are here"

demo: .venv/installed-demo
	$(get-models)
	@sh examples/demo.sh $(BIN)/momentseek .venv/demo

# What every change must pass: all but the tests that only repeat a published figure. It leaves pictures of every view
# of the page, to keep and to look at.
test test-all: export MOMENTSEEK_SCREENSHOTS ?= $(CURDIR)/artefacts/screenshots
test: .venv/installed-dev native .venv/chromium style
	$(get-models)
	$(call with-types,$(PYTEST) $(SPREAD) -m 'not figures')

# Every test there is: before a release, and when a figure in the docs may have changed.
test-all: export MOMENTSEEK_EXAMPLES ?= thorough
test-all: .venv/installed-dev native .venv/chromium style
	$(get-models)
	$(call with-types,$(PYTEST) $(SPREAD))

# Without the browser and what takes more than a few seconds: while one works.
test-quick: .venv/installed-dev native
	$(get-models)
	$(PYTEST) $(SPREAD) -m 'not figures and not slow and not browser'

# Every test, and which lines none of them reaches; slower.
coverage: .venv/installed-dev .venv/chromium
	$(get-models)
	$(PYTEST) -n $(WORKERS) --dist worksteal --cov --cov-report=term

lint: style
	$(BIN)/mypy --num-workers 2

style: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The documentation site in artefacts/site; a dead link, an unknown anchor or a name that is not public is an error.
docs docs-serve test test-all: export NO_MKDOCS_2_WARNING ?= 1
docs: .venv/installed-dev
	$(BIN)/mkdocs build --strict

# The same on http://127.0.0.1:8000, built again whenever a page or a docstring changes.
docs-serve: .venv/installed-dev
	$(BIN)/mkdocs serve --watch src

# The pictures in the documentation, taken again of the page and of plots as they are now.
pictures: .venv/installed-dev native .venv/chromium
	$(get-models)
	$(BIN)/momentseek demo --into .venv/demo >/dev/null
	$(BIN)/python tools/pictures.py .venv/demo

# One record of all of it, with the machine and the commit: compare it with an older one (bench/compare.py OLD NEW), or put
# it into the docs (bench/page.py artefacts/bench.json).
bench: export BENCH_RECORD ?= artefacts/bench.json
bench: .venv/installed-dev native
	$(BIN)/python bench/start.py
	$(BIN)/python bench/checks.py
	$(BIN)/python bench/evaluation.py
	$(BIN)/python bench/captions.py
	$(BIN)/python bench/localise.py
	$(BIN)/python bench/scan.py --quick
	$(BIN)/python bench/ingest.py --quick
	$(BIN)/python bench/decode.py --sizes 1080p --kinds film
	$(BIN)/python bench/growth.py --sizes 1k,10k
	$(BIN)/python bench/serve.py
	$(BIN)/python bench/train.py --quick
	$(BIN)/python bench/rank.py --quick
	$(BIN)/python bench/map.py --quick

# Coverage-guided fuzzing of every reader of hostile input, a minute each: make fuzz FUZZ_SECONDS=600 FUZZ_TARGETS=subtitles
FUZZ_SECONDS ?= 60
fuzz: .venv/installed-fuzz sanitize
	$(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# The kernels' tests with kernels that check every access and every operation (ASan, UBSan), in a copy of the package.
SANITIZERS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitize: .venv/installed-dev
	rm -rf .venv/sanitized && mkdir .venv/sanitized && cp -r src .venv/sanitized
	CC=gcc $(BIN)/python .venv/sanitized/src/momentseek/core/native/build.py $(SANITIZERS)
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 PYTHONPATH=.venv/sanitized/src \
	  $(BIN)/python -m pytest -q tests/core/native tests/library/scan tests/core/test_ranking_top.py \
	  tests/measuring/formats/test_record_lists.py tests/measuring/measures/test_matching.py tests/search/localise/test_compiled.py \
	  'tests/test_fuzz.py::test_seeds_and_their_mutations_are_read_or_refused[annotations]'

# Known faults of what we depend on, as pip-audit finds them; needs the network.
audit: .venv/bin/python
	$(PIP) pip-audit
	$(BIN)/pip-audit --require-hashes --disable-pip -r requirements.lock

# Everything but training, each file checked by its SHA-256; `make lock` writes the hashes after constraints.txt changed.
install-locked: .venv/bin/python
	$(BIN)/python -m pip install --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --no-deps --no-build-isolation .

# Everything but training: torch's builds differ by machine.
lock: .venv/installed-dev
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-annotate --quiet \
	  --constraints constraints.txt --group build $(addprefix --extra ,parquet plots offline speech ocr demo serve mcp) \
	  --custom-compile-command 'make lock' --output-file requirements.lock

# The papers' tables again, on simulated data: what each would take (EST=--estimate), or all of them, over three seeds.
tables: .venv/installed-dev
	for table in mvmr-2 mvmr-3 debiased-2 tvr-ranking-5 tvr-3 mvmr-2-activitynet debiased-2-activitynet mvmr-2-tacos; do \
		OMP_NUM_THREADS=1 nice -n 19 .venv/bin/momentseek reproduce $$table --out artefacts/tables $(EST) || exit 1; done

clean:
	rm -rf .venv artefacts .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "momentseek needs Python 3.11 or later; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

# The kernels in C, compiled again when one of their files has changed; without a compiler numpy does their work.
native .venv/kernels: .venv/bin/python $(wildcard src/momentseek/core/native/*.[ch]) src/momentseek/core/native/build.py
	@$(BIN)/python src/momentseek/core/native/build.py || true
	@touch .venv/kernels

.venv/installed: .venv/bin/python pyproject.toml constraints.txt | .venv/kernels
	$(PIP) -e .
	@touch $@

.venv/installed-demo: .venv/installed
	$(PIP) -e '.[demo]'
	@touch $@

.venv/installed-dev: .venv/installed
	$(PIP) -e '.[dev]'
	@touch $@

.venv/installed-fuzz: .venv/installed-dev
	$(PIP) -e '.[fuzz]'
	@touch $@

# The page's tests drive Debian's chromium without its windows, or with them; where neither can be found nor installed
# they are skipped, and say so.
.venv/chromium: .venv/bin/python
	@command -v chromium-headless-shell >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null 2>&1; } || \
	command -v chromium >/dev/null || \
	echo "chromium is not here: the browser tests will be skipped"
	@touch $@
