//! Real files, compared with the results of another reader (see
//! `testdata/capture/files/README.md`).

use std::io::Read;

use capfile::{Compression, Fault, Format, Reader, first_time};
use flate2::read::MultiGzDecoder;

use crate::support::{read, read_whole, real};

/// A file's name, format, link type, and how many packets it has; time, length and captured length of the first and
/// of the last.
type Expected = (
    &'static str,
    Format,
    u16,
    usize,
    (i64, u32, usize),
    (i64, u32, usize),
);

#[rustfmt::skip]
const FILES: [Expected; 14] = [
    ("atm.erf.gz", Format::Erf, 100, 13, (992_368_804_558_952_272, 48, 48), (992_368_805_750_656_486, 48, 48)),
    ("bgp-orf.pcapng", Format::PcapNg, 113, 1, (1_661_875_936_630_159_000, 167, 167), (1_661_875_936_630_159_000, 167, 167)),
    ("chdlc.erf.gz", Format::Erf, 104, 3, (993_203_618_532_316_327, 308, 308), (993_203_618_532_718_182, 308, 308)),
    ("eth.erf.gz", Format::Erf, 1, 22, (992_368_802_095_017_493, 62, 54), (992_368_803_016_472_340, 60, 54)),
    ("ipv6_ftp_nasa_40.snp", Format::Snoop, 1, 40, (888_857_469_763_956_000, 78, 78), (888_857_509_466_668_000, 57, 57)),
    ("irc-dcc-state-growth.pcapng", Format::PcapNg, 1, 8, (1_700_000_000_000_000_000, 54, 54), (1_700_000_001_002_000_000, 54, 54)),
    ("linux_cooked_socket.dmp.gz", Format::Pcap, 113, 17, (990_650_785_426_210_000, 74, 74), (990_650_786_857_034_000, 68, 68)),
    ("max-header.pcapng", Format::PcapNg, 1, 6, (1_781_183_007_902_981_000, 54, 54), (1_781_183_007_903_711_000, 54, 54)),
    ("nlanr.tsh.gz", Format::Tsh, 228, 1981, (1_058_228_109_051_650_000, 370, 36), (1_058_228_197_751_568_000, 238, 36)),
    ("pcap_v2.2.dmp.gz", Format::Pcap, 1, 40, (855_707_157_818_762_000, 82, 68), (855_707_159_266_986_000, 590, 68)),
    ("psc.fddi.dmp.gz", Format::Pcap, 1, 529, (859_487_925_317_135_000, 78, 79), (859_487_926_195_745_000, 54, 55)),
    ("reno.epeek.gz", Format::EtherPeek, 1, 1000, (869_040_884_000_000_000, 70, 70), (869_040_892_000_000_000, 530, 100)),
    ("timestamp_invalid_micro.pcap", Format::Pcap, 113, 3, (1_418_145_369_999_999_000, 76, 76), (1_418_147_517_483_648_000, 68, 68)),
    ("timestamp_invalid_nano.pcap", Format::Pcap, 113, 3, (1_418_145_369_999_999_999, 76, 76), (1_418_145_372_147_483_648, 68, 68)),
];

#[test]
fn real_files_read_as_another_reader_reads_them() {
    for (name, format, link, count, first, last) in FILES {
        let octets = real(name);
        let reader = Reader::new(&octets[..]).expect(name);
        assert_eq!(reader.format(), format, "{name}");
        let packed = name.ends_with(".gz").then_some(Compression::Gzip);
        assert_eq!(reader.compression(), packed, "{name}");
        let whole = read_whole(&octets);
        assert_eq!(whole.packets.len(), count, "{name}");
        let figures = |at: usize| {
            let packet = &whole.packets[at];
            (packet.time_ns, packet.length, packet.octets.len())
        };
        assert_eq!((figures(0), figures(count - 1)), (first, last), "{name}");
        assert!(whole.packets.iter().all(|packet| packet.link.0 == link));
        let bad_times = if name.starts_with("timestamp_invalid") {
            2
        } else {
            0
        };
        let faults = [(Fault::BadTime, bad_times)];
        assert_eq!(whole.faults, faults[..usize::from(bad_times > 0)], "{name}");
        assert_eq!(first_time(&octets[..]).expect(name), Some(first.0));
    }
}

#[test]
fn real_files_cut_at_any_octet_give_a_prefix_of_their_packets() {
    for (name, ..) in FILES {
        let mut octets = real(name);
        if name.ends_with(".gz") {
            let mut plain = Vec::new();
            let mut decoder = MultiGzDecoder::new(&octets[..]);
            decoder.read_to_end(&mut plain).expect("decompresses");
            octets = plain;
        }
        octets.truncate(3000);
        let whole = read(&octets[..]).expect("of a known format");
        for len in 0..octets.len() {
            if let Ok(cut) = read(&octets[..len]) {
                assert_eq!(
                    cut.packets,
                    whole.packets[..cut.packets.len()],
                    "{name} {len}"
                );
            }
        }
    }
}
