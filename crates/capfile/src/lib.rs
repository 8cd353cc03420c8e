//! Files of packets: pcap, pcapng, snoop, ERF, TSH and EtherPeek, as they are or compressed with gzip or zstd.
#![forbid(unsafe_code)]
