# Putting the program on a machine: `make install PREFIX=/opt`, as root; DESTDIR for packagers.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= /etc/systemd/system
SYSUSERSDIR ?= /etc/sysusers.d
# The interpreter that the service runs: a system one, for ProtectHome= hides home folders.
SYSTEM_PYTHON ?= /usr/bin/python3
# A folder of wheels made by `make wheels`: with it nothing is fetched.
WHEELS ?=

# What an earlier build left: setuptools would pack modules that are no longer in the tree.
STALE = build/lib* build/bdist.*

LIBDIR = $(DESTDIR)$(PREFIX)/lib/llmgw
PIP = $(LIBDIR)/bin/python -m pip --disable-pip-version-check -q
UNITS = llmgw.service llmgw.socket
SUITABLE = import sys; sys.exit(sys.version_info < (3, 11) or \
	sys.base_prefix.startswith(("/home/", "/root/", "/run/user/")))

.PHONY: install install-program install-units install-config uninstall wheels system

install: install-program install-units install-config ## program, units and a configuration, below PREFIX and DESTDIR
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then \
	  systemd-sysusers $(SYSUSERSDIR)/llmgw.conf && systemctl daemon-reload; fi

ifneq ($(ONEFILE),)
install-program:
	rm -rf $(LIBDIR)
	install -D -m 755 $(ONEFILE) $(LIBDIR)/bin/llmgw
	install -d $(DESTDIR)$(PREFIX)/bin
	ln -sfn $(PREFIX)/lib/llmgw/bin/llmgw $(DESTDIR)$(PREFIX)/bin/llmgw
else
install-program:
	@$(SYSTEM_PYTHON) -c '$(SUITABLE)' || { echo >&2 "install: SYSTEM_PYTHON=$(SYSTEM_PYTHON) \
	must be Python 3.11 or later, outside of home folders"; exit 1; }
	@$(SYSTEM_PYTHON) -c 'import ensurepip' || { echo >&2 "install: $(SYSTEM_PYTHON) lacks venv: \
	apt-get install python3-venv"; exit 1; }
	$(SYSTEM_PYTHON) -m venv $(LIBDIR)
ifeq ($(WHEELS),)
	rm -rf $(STALE)
	$(PIP) install --upgrade -c constraints.txt .
else
	$(PIP) install --upgrade --no-index --find-links $(WHEELS) llmgw
	$(PIP) install --force-reinstall --no-deps --no-index --find-links $(WHEELS) llmgw
endif
	@$(LIBDIR)/bin/python -m llmgw --version  # pip tells nobody where it was not compiled
	sed -i '1s|^#!$(DESTDIR)|#!|' $(LIBDIR)/bin/llmgw
	install -d $(DESTDIR)$(PREFIX)/bin
	ln -sfn $(PREFIX)/lib/llmgw/bin/llmgw $(DESTDIR)$(PREFIX)/bin/llmgw
endif

install-units:
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSUSERSDIR)
	for unit in $(UNITS); do \
	  sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' systemd/$$unit \
	    > $(DESTDIR)$(UNITDIR)/$$unit && chmod 644 $(DESTDIR)$(UNITDIR)/$$unit || exit 1; done
	install -m 644 systemd/llmgw.sysusers $(DESTDIR)$(SYSUSERSDIR)/llmgw.conf

install-config:
	install -d -m 755 $(DESTDIR)$(SYSCONFDIR)/llmgw
	[ -e $(DESTDIR)$(SYSCONFDIR)/llmgw/llmgw.toml ] || \
	  install -m 644 etc/llmgw.toml $(DESTDIR)$(SYSCONFDIR)/llmgw/llmgw.toml

uninstall: ## take program and units away again; the configuration stays
	rm -rf $(LIBDIR)
	rm -f $(DESTDIR)$(PREFIX)/bin/llmgw $(DESTDIR)$(SYSUSERSDIR)/llmgw.conf
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(UNITS))

# Compiled for SYSTEM_PYTHON where gcc and its headers are there (Debian: gcc python3-dev).
wheels: ## the program and all it needs as wheels in build/wheels, for an install without a network
	rm -rf build/wheels $(STALE)
	$(SYSTEM_PYTHON) -m venv build/venv
	build/venv/bin/pip --disable-pip-version-check -q wheel -c constraints.txt -w build/wheels .

# A command that boots a systemd which may be broken, and runs what follows in it, as root.
SYSTEMD_SANDBOX ?= $(wildcard ../shared/tools/systemd-sandbox)

system: $(STAMP) wheels ## install, units, reloads, restarts on a real systemd (root; Debian: systemd dbus python3-venv)
	@[ -n "$(SYSTEMD_SANDBOX)" ] || { echo >&2 "system: SYSTEMD_SANDBOX must name a command \
	that runs another one under a systemd of its own"; exit 1; }
	for onefile in "" $(ONEFILE); do \
	  $(SYSTEMD_SANDBOX) env LLMGW_SYSTEM_TEST=1 LLMGW_ONEFILE=$$onefile \
	    LLMGW_PURE=$(LLMGW_PURE) \
	    $(BIN)/pytest -p no:randomly -p no:cacheprovider tests/system/test_systemd.py || exit 1; done
