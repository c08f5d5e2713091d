# Two commands do it all on a fresh Debian or Ubuntu with a Rust toolchain and Python: `make demo` and `make test`.

CARGO ?= cargo
OUT   ?= out
PREFIX ?= /usr/local

.PHONY: help build install uninstall wheel static deb image packages test-packages demo check test check-other-systems semver hooks test-guest test-lab test-long judge-fs mutants probe-nightly bench bench-fuse reproduce site clean

help:            ## Say what there is
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

build:           ## Build the program (target/release/imbrex)
	@scripts/install.sh build
	$(CARGO) build --release --locked

install:         ## Install the program, manual pages and completions below PREFIX (/usr/local)
	@scripts/place.sh check "$(DESTDIR)$(PREFIX)"
	@$(MAKE) --no-print-directory build
	@scripts/place.sh install "$(DESTDIR)$(PREFIX)"

uninstall:       ## Remove what `make install` with the same PREFIX installed
	@scripts/place.sh remove "$(DESTDIR)$(PREFIX)"

wheel static deb image:
	@scripts/install.sh packages
	scripts/package/$@.sh $(OUT)/packages

wheel:           ## Make the Python wheel, which has the program as well (out/packages)
static:          ## Make the archive with the static program for Linux on x86-64
deb:             ## Make the Debian package
image:           ## Make the container image, without a daemon

# Each installs what it needs.
.NOTPARALLEL: packages
packages: static image deb wheel ## Make all packages

test-packages:   ## Install each package in out/packages into clean Debian roots, without a network, and run it
	@scripts/install.sh packages
	scripts/package/test.sh $(OUT)/packages

demo: build      ## Run a built-in workload on one drive of every kind; table and report
	target/release/imbrex simulate demo --out $(OUT)/demo
	@echo "The report is $(OUT)/demo/report.html: open it in a browser."

check:           ## Format, lints, the fast tests: for people at work
	scripts/check.sh

test:            ## Install what is needed and run everything
	@scripts/install.sh test
	scripts/test.sh

check-other-systems: ## Check that the crates without input and output compile for Windows and macOS
	@scripts/install.sh packages
	scripts/other-systems.sh

semver:          ## Check the public items of the crates against the last version with a tag
	scripts/semver.sh

hooks:           ## Install the check of commit subjects into this clone
	ln -sf "$(CURDIR)/scripts/commit-msg" "$$(git rev-parse --git-path hooks)/commit-msg"

test-guest:      ## The tests that boot a kernel in QEMU: ublk and its file systems, disks over vhost-user
	scripts/guest/test.sh
	scripts/guest/vhost-user.sh

test-lab:        ## Build the kernel of the lab (some ten minutes, once), and run the tests that need it
	@scripts/install.sh lab
	scripts/lab.sh

test-long:       ## The tests that take minutes or hours: every stand-in at full length, kills, 100 GiB of every drive, an hour of power cuts a carrier
	@scripts/install.sh test
	$(CARGO) test --release --workspace --locked -- --ignored --skip long_soak_ --skip probe::real_time:: --skip nbd::strangers::
	$(CARGO) test --release --workspace --locked --test all -- --ignored --test-threads=1 probe::real_time:: nbd::strangers::
	IMBREX_LONG=1 $(CARGO) test --release -p imbrex-layer -p imbrex-device --locked --test all
	IMBREX_FS_LONG=834 IMBREX_FS_PAIRS=25 IMBREX_LONG=1 $(CARGO) test --release -p imbrex-fs --locked
	scripts/soak.sh
	scripts/bad-inputs.py target/release/imbrex

judge-fs:        ## Judge the file systems behind a mount: pjdfstest, fsx, stress-ng, fio, dbench, SQLite, git, rsync, a compiled tree
	scripts/judge-fs.sh

mutants:         ## Alter what guards data, thing by thing: a test must fail of each (days; SHARD=1/20 a part)
	@scripts/install.sh mutants
	SHARD=$(SHARD) scripts/mutants.sh

probe-nightly:   ## The probe on drives of terabytes, others each night
	scripts/probe-nightly.sh

bench:           ## Measure speed, with the targets beside; records benches/results/
	@scripts/install.sh test
	$(CARGO) run --profile dist --locked -p imbrex-bench -- --record benches/results

bench-fuse:      ## Measure the file systems behind a mount beside libfuse's passthrough_hp, as ratios
	@scripts/install.sh test
	scripts/bench-fuse.sh strict-append-2t
	scripts/bench-fuse.sh caveat-2t

reproduce: build ## Reproduce the papers' figures into docs/
	target/release/imbrex reproduce --out docs

site:            ## Build the documentation site (out/site) with mdBook, and check its links
	scripts/site.sh "$(OUT)/site"

clean:           ## Remove what was built
	$(CARGO) clean
	rm -rf $(OUT)
