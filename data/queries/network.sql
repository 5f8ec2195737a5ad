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

-- The counters that together are the wire to a device reached over some fabrics: one an adapter, its
-- best. A port's counters and its interface's count the same bytes: the interface's driver wins.
CREATE OR REPLACE MACRO wire_counters(of_run, fabrics) AS TABLE
SELECT host, device, counter
FROM (
    SELECT *, starts_with(counter, 'ethtool.') AS of_driver,
           bool_or(of_driver) OVER () AS driver_known
    FROM (SELECT host, device, arg_min(counter, preference) AS counter FROM receive_counters
          WHERE run_id = of_run AND list_contains(fabrics, fabric) GROUP BY host, device)
)
WHERE of_driver OR NOT driver_known;

-- Bytes received over that wire in a window; NULL as soon as one adapter's are not known.
CREATE OR REPLACE MACRO wire_bytes(of_run, fabrics, begin_ns, end_ns) AS TABLE
SELECT sum_all(g.grown) AS received_bytes
FROM wire_counters(of_run, fabrics) w
LEFT JOIN growths(begin_ns, end_ns) g
    ON g.run_id = of_run AND g.probe = 'nic' AND g.host = w.host AND g.device = w.device
   AND g.counter = w.counter;
