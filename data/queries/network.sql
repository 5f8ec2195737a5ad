-- The best counter of received bytes of each adapter or port, for what comes over RDMA and for what
-- comes over TCP. RDMA has counters of its own, by preference; the interface's total misses it with
-- some drivers, and has everything else on the wire in it as well.
CREATE OR REPLACE VIEW receive_counters AS
WITH known(fabric, counter, preference) AS (VALUES
    ('rdma', 'ethtool.rx_vport_rdma_unicast_bytes', 1), ('rdma', 'ethtool.rx_roce_good_bytes', 2),
    ('rdma', 'hw.rx_roce_good_bytes', 3), ('rdma', 'ethtool.rdma_rx_bytes', 4),
    ('rdma', 'hw.rdma_rx_bytes', 5), ('rdma', 'ib.port_rcv_data_bytes', 6),
    ('tcp', 'netdev.rx_bytes', 7))
SELECT p.run_id, p.host, p.device, k.fabric, arg_min(k.counter, k.preference) AS counter,
       min(k.preference) AS preference
FROM probes p JOIN known k USING (counter)
WHERE p.probe = 'nic' AND p.value IS NOT NULL
GROUP BY p.run_id, p.host, p.device, k.fabric;
