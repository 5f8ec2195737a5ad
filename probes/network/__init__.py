"""Network: adapter, driver and RDMA port counters, and the kernel's NFS client."""
