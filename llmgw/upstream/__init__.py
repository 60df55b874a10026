"""The only way out: probes, listings, scrapes and the inference path."""
