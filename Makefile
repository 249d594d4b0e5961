# Two commands do everything, set-up included: `make book` and `make test`.
# Needs Python 3.11 or newer with pip, and make. Nothing is installed outside .venv.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TORCH  ?=
# What pytest collects: every chapter by nbval, the tests, and the module's doctests. The long ones
# stand first, so that no process begins one at the end; before them what compiles the loops that
# many call, which each would compile for itself, and what builds the book, for which many wait.
TESTS  ?= tests/module/test_compiled.py tests/book/test_book_build.py book tests fairpg_lite
# Four processes for two cores, as some of them wait; in `make check` hardly any does.
WORKERS = 4
check: WORKERS = 2
# What `make test` leaves to .ci/run: tests of the tests, and the same question at dozens of seeds.
MARK ?= not thorough
# In that order; xdist's own begins with the files that have the most tests.
PYTEST_ARGS ?= -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Some machines set this, and then each of two hundred processes compiles our modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
NAME   ?= synthetic
JOBS   ?= 1
ARGS   ?=
PAGE   ?= coursework/assignment.ipynb

.PHONY: help setup book reproduce pdf lab handout grade exam slides test test-oldest test-newest interrupt check portable fragile lint style format bench run-chapters lock clean

help:  ## list these commands
	@echo "fairpg-lite: fairness of exposure in learning to rank"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## make .venv and install the pinned dependencies (does nothing the second time)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "fairpg-lite needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Try: make setup PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(if $(TORCH),"$(TORCH)" $$(grep -vE '^(#|torch==)' requirements.lock),-r requirements.lock)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

book: setup  ## build the book and print the page to open
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "Open this page: $(CURDIR)/_build/html/index.html"

pdf: book  ## print the whole book to _build/fairpg-lite.pdf (needs Chromium)
	$(BIN)/python -m tools.make_pdf

lab: setup  ## open the assignment and the chapters in JupyterLab; PAGE=01_ten_candidates.ipynb
	cd book && PYTHONPATH="$(CURDIR)/book:$$PYTHONPATH" $(abspath $(BIN))/jupyter-lab \
	  --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/$(PAGE) \
	  --ContentsManager.hide_globs="['solution.*', '__pycache__', '*.pyc', '.DS_Store', '*~']"

handout: setup  ## make the students' zip of the coursework; ARGS="--week 1" for one of four
	$(BIN)/python -m tools.for_teachers handout $(ARGS)

grade: setup  ## grade a class: CLASS=folder WEEK=2 GRADES=folder ARGS="--jobs 2"
	@test -n "$(CLASS)" || { echo 'Say which folder holds the submissions: make grade CLASS=folder'; exit 2; }
	PYTHONPATH="$(CURDIR):$(CURDIR)/book/coursework" $(BIN)/python -m checker grade "$(CLASS)" \
	  --out "$(or $(GRADES),_build/grades)" $(if $(WEEK),--week $(WEEK)) $(ARGS)

exam: setup  ## draw an exam of your own, two variants with answers: SEED=any-word ARGS="--chapters 1 2 3"
	@test -n "$(SEED)" || { echo 'Say which seed, and keep it to yourself: make exam SEED=any-word'; exit 2; }
	$(BIN)/python -m tools.make_exam --seed "$(SEED)" $(ARGS)

slides: book  ## make slides of all chapters, with notes, in _build/slides
	$(BIN)/python -m tools.make_slides

lint: style  ## check style, types and spelling
	$(BIN)/mypy

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

format: setup  ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Types are checked while the tests run.
beside_types = $(BIN)/mypy & types=$$!; $(BIN)/python -m pytest $(PYTEST_ARGS) $(1); tests=$$?; \
	  wait $$types || { echo "mypy found wrong types: above, or again with make lint"; exit 1; }; \
	  exit $$tests

test: style  ## style, types, module, doctests, chapters (nbval), pairing, build; MARK= for tests of the tests, too
	$(call beside_types,$(if $(MARK),-m "$(MARK)") $(TESTS))

check: style  ## the quick loop while you change the module: style, types, its tests but the slow ones
	$(call beside_types,-q -m "not (slow or browser or build or chapter)" tests fairpg_lite)

test-oldest: ends = oldest
test-oldest:  ## the module's tests with the lowest versions that pyproject.toml names; TORCH=... of your own
test-newest: ends = newest
test-newest:  ## the module's tests with the newest versions of everything; TORCH=... of your own
test-oldest test-newest:
	$(PYTHON) -m venv .venv-$(ends)
	.venv-$(ends)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
	  $(if $(TORCH),"$(TORCH)" $$($(PYTHON) -m tools.bounds $(ends) | sed 's/^torch[^ ]*//'),$$($(PYTHON) -m tools.bounds $(ends)))
	.venv-$(ends)/bin/python -m pytest -q -W default -o addopts="--doctest-modules --strict-markers" tests/module fairpg_lite

interrupt: setup  ## stop commands at 216 random moments, call them again, compare; ARGS="--rounds 1"
	PYTHONPATH="$(CURDIR)/book" $(BIN)/python -m tools.interrupt $(ARGS)

portable: setup  ## chapters and tests as on other machines; ARGS="--profiles avx2 --chapters 11"
	$(BIN)/python -m tools.portable $(ARGS)

fragile: setup  ## which printed numbers move when inputs move by 1e-12; ARGS="--chapters 11"
	$(BIN)/python -m tools.fragile $(ARGS)

bench: setup  ## measure speed and accuracy; prints tables of ratios
	$(BIN)/python -m benchmarks

reproduce: setup  ## run one of the paper's experiments: NAME=synthetic JOBS=2 ARGS=--quick
	cd book && $(abspath $(BIN))/python -m experiments $(NAME) --jobs $(JOBS) $(ARGS)

run-chapters: setup  ## re-run the chapters whose text changed and store their outputs
	$(BIN)/python tools/make_coursework.py
	$(BIN)/python tools/run_chapters.py $(CHAPTERS)

lock:  ## resolve the dependencies anew and rewrite requirements.lock
	sh tools/lock.sh

clean:  ## remove what was built, keep .venv
	rm -rf _build build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
