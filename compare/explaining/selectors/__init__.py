"""Which selectors may say where heads look: what is written, kept to what attention shows, and tried."""
