//! The event loop: links, paths, hosts, probes.
