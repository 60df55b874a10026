"""The aiohttp server: handlers, writers towards the client, admin pages."""
