# What watches the gateway: alert rules and the scrape configuration, judged by Prometheus itself.
PROMTOOL ?= promtool

.PHONY: prometheus

prometheus: ## check the alert rules, and test that they fire (Debian: prometheus)
	@command -v $(PROMTOOL) >/dev/null || { echo >&2 "prometheus: PROMTOOL=$(PROMTOOL) is not \
	there: apt-get install prometheus"; exit 1; }
	$(PROMTOOL) check config etc/prometheus/prometheus.yml
	$(PROMTOOL) check rules etc/prometheus/llmgw.rules.yml
	$(PROMTOOL) test rules etc/prometheus/llmgw.test.yml
