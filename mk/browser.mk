# The admin pages in a real Chromium, which is the system's own (Debian: chromium).
.PHONY: browser screenshots

BROWSER = $(AS_WRITTEN) $(BIN)/pytest -m browser -p no:randomly -p no:cacheprovider tests/e2e/test_admin_browser.py

browser: $(VENV)/.browser ## the admin pages in Chromium: keyboard, screen reader, 320 px, dark, live
	@command -v chromium >/dev/null || { echo >&2 "browser: apt-get install chromium"; exit 1; }
	$(BROWSER)

screenshots: $(VENV)/.browser ## the same, and pictures of every page in docs/img
	LLMGW_SCREENSHOTS=docs/img $(BROWSER)

$(VENV)/.browser: $(STAMP)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[browser]'
	@touch $@
