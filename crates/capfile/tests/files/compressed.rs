//! gzip, zstd, bzip2, xz and lz4: several members, and streams that are cut short or changed.

use std::io::{Read, Write};

use capfile::{Compression, Effect, Fault, OpenError, Reader};
use flate2::write::GzEncoder;
use flate2::{Compression as Level, GzBuilder};

use crate::pcap::{header, record};
use crate::support::{Dribble, LITTLE, read, read_whole};

/// A file whose packets do not compress to nothing.
fn file(packets: u32) -> Vec<u8> {
    let mut file = header(LITTLE, 0xa1b2_c3d4, (2, 4), 1);
    let mut state = 1u32;
    for n in 0..packets {
        let octets: Vec<u8> = (0..200)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 28) as u8
            })
            .collect();
        file.extend(record(LITTLE, [n, 0, 200, 200], &octets));
    }
    file
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(octets).expect("to memory");
    encoder.finish().expect("to memory")
}

/// With a checksum, as the zstd command writes.
fn zstd(octets: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("to memory");
    encoder.include_checksum(true).expect("before any octet");
    encoder.write_all(octets).expect("to memory");
    encoder.finish().expect("to memory")
}

fn bzip2(octets: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(octets).expect("to memory");
    encoder.finish().expect("to memory")
}

/// In blocks, as the xz command writes with several threads.
fn xz(octets: &[u8]) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.set_block_size(std::num::NonZeroU64::new(1 << 20));
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("to memory");
    encoder.write_all(octets).expect("to memory");
    encoder.finish().expect("to memory")
}

/// In blocks that refer to those before, with every checksum.
fn lz4(octets: &[u8]) -> Vec<u8> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Linked)
        .block_checksums(true)
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(octets).expect("to memory");
    encoder.finish().expect("to memory")
}

type Compress = fn(&[u8]) -> Vec<u8>;
const ALL: [(Compression, Compress); 5] = [
    (Compression::Gzip, gzip),
    (Compression::Zstd, zstd),
    (Compression::Bzip2, bzip2),
    (Compression::Xz, xz),
    (Compression::Lz4, lz4),
];

#[test]
fn a_compressed_file_reads_as_the_file_does() {
    let plain = file(3000);
    for (compression, compress) in ALL {
        let packed = compress(&plain);
        let reader = Reader::new(&packed[..]).expect("pcap");
        assert_eq!(reader.compression(), Some(compression));
        assert_eq!(read_whole(&packed), read_whole(&plain));
        let (octets, step) = (&packed[..], 7);
        assert_eq!(
            read(Dribble { octets, step }).expect("pcap"),
            read_whole(&plain)
        );
    }
}

#[test]
fn members_and_frames_follow_each_other_wherever_the_file_is_divided() {
    let plain = file(40);
    for (_, compress) in ALL {
        for at in [1, 20, 24, 300, 5000, plain.len()] {
            let (one, two) = plain.split_at(at);
            let packed = [compress(one), compress(b""), compress(two)].concat();
            assert_eq!(read_whole(&packed), read_whole(&plain), "divided at {at}");
        }
    }
}

#[test]
fn a_gzip_header_with_every_field_is_passed_over() {
    let plain = file(4);
    let mut encoder = GzBuilder::new()
        .extra(vec![0; 300])
        .filename("a.pcap")
        .comment("of two\nlines")
        .write(Vec::new(), Level::fast());
    encoder.write_all(&plain).expect("to memory");
    let packed = encoder.finish().expect("to memory");
    assert_eq!(read_whole(&packed), read_whole(&plain));
    // Zeros pad the file to the length of a tape's block.
    let padded = [packed, vec![0; 512]].concat();
    assert_eq!(read_whole(&padded), read_whole(&plain));
}

#[test]
fn zeros_pad_a_stream_of_xz_by_fours() {
    let plain = file(4);
    let (one, two) = plain.split_at(500);
    for (zeros, fault) in [(4, None), (8, None), (3, Some(Fault::CompressionCorrupt))] {
        let packed = [xz(one), vec![0; zeros], xz(two), vec![0; zeros]].concat();
        let whole = read_whole(&packed);
        assert_eq!(whole.first.map(|(_, fault)| fault), fault, "{zeros} zeros");
        if fault.is_none() {
            assert_eq!(whole, read_whole(&plain));
        }
    }
}

#[test]
fn frames_to_be_skipped_are_wherever_they_stand() {
    let plain = file(4);
    let (one, two) = plain.split_at(500);
    let skipped = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for (compression, compress) in [
        (Compression::Zstd, zstd as Compress),
        (Compression::Lz4, lz4),
    ] {
        let (one, two) = (compress(one), compress(two));
        let packed = [&skipped[..], &skipped, &one, &skipped, &two, &skipped].concat();
        let reader = Reader::new(&packed[..]).expect("pcap");
        assert_eq!(reader.compression(), Some(compression));
        assert_eq!(read_whole(&packed), read_whole(&plain));
        // The last one is cut short.
        let cut = read_whole(&packed[..packed.len() - 1]);
        let end = plain.len() as u64;
        assert_eq!(cut.first, Some((end, Fault::CompressionTruncated)));
    }
}

/// The packets of files that the lz4 command (1.9.4) compressed:
/// `lz4 -1 -B4 -BD`; `lz4 -9 -B5 -BI -BX --no-frame-crc`; and two frames, the first one of `lz4 --content-size -B4`,
/// the second one of `lz4 -12`.
#[test]
fn files_of_the_lz4_command_read_as_what_it_compressed() {
    let mut plain = header(LITTLE, 0xa1b2_c3d4, (2, 4), 1);
    for n in 0..600_u32 {
        let octet = |i: u32| ((n * 7 + i) * (1 + i / 64)) as u8;
        let octets: Vec<u8> = (0..300).map(octet).collect();
        plain.extend(record(LITTLE, [n, 0, 300, 300], &octets));
    }
    let whole = read_whole(&plain);
    for name in ["linked", "block-checksums", "two-frames"] {
        let path = format!("../../testdata/capture/lz4-{name}.pcap.lz4");
        let packed = std::fs::read(path).expect("it is in the repository");
        let found = read_whole(&packed);
        assert_eq!(found.first, None, "{name}");
        assert_eq!(found, whole, "{name}");
    }
}

#[test]
fn a_frame_of_lz4_by_hand_and_each_field_that_is_wrong() {
    let plain = file(2);
    // One block that is not compressed, no checksum but the header's (the second byte of XXH32 of 60 40 is 82).
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
    frame.extend((plain.len() as u32 | 1 << 31).to_le_bytes());
    frame.extend(&plain);
    frame.extend([0; 4]);
    assert_eq!(read_whole(&frame), read_whole(&plain));
    // Cut inside the block: what is there counts, and the fault has its place.
    let cut = read_whole(&frame[..frame.len() - 10]);
    assert_eq!(cut.packets, read_whole(&plain).packets[..1]);
    let end = plain.len() as u64 - 6;
    assert_eq!(cut.first, Some((end, Fault::CompressionTruncated)));
    // Version, a reserved bit, a dictionary, the size of blocks, the header's checksum.
    for (at, octet) in [
        (4, 0x20),
        (4, 0x62),
        (4, 0x61),
        (5, 0x30),
        (5, 0x41),
        (6, 0),
    ] {
        let mut wrong = frame.clone();
        wrong[at] = octet;
        let error = read(&wrong[..]).expect_err("a wrong header");
        assert!(
            matches!(error, OpenError::Corrupt(Compression::Lz4)),
            "{at} {octet}"
        );
    }
    // A block longer than the frame allows, after a good one, and something that is no frame.
    let good = &frame[..frame.len() - 4];
    for rest in [&[1, 0, 1, 0x80][..], b"\0\0\0\0not lz4 at all"] {
        let whole = read_whole(&[good, rest].concat());
        assert_eq!(whole.packets, read_whole(&plain).packets);
        let end = plain.len() as u64;
        assert_eq!(whole.first, Some((end, Fault::CompressionCorrupt)));
    }
}

#[test]
fn a_stream_cut_short_gives_what_it_holds_and_where_that_ends() {
    let plain = file(300);
    let whole = read_whole(&plain);
    for (compression, compress) in ALL {
        let packed = compress(&plain);
        for len in (0..packed.len()).step_by(97).chain([packed.len() - 1]) {
            let cut = match read(&packed[..len]) {
                Ok(cut) => cut,
                // Not even the header.
                Err(_) => continue,
            };
            let (offset, fault) = cut.first.expect("a fault");
            assert_eq!(fault, Fault::CompressionTruncated, "{compression} {len}");
            assert_eq!(cut.faults.len(), 1);
            let count = cut.packets.len();
            assert_eq!(cut.packets, whole.packets[..count]);
            let left = offset - 24 - 216 * count as u64;
            assert!(left < 216, "every packet that is there is given");
        }
    }
    // gzip's bytes arrive one by one: half of them give about half of the packets.
    let packed = gzip(&plain);
    let cut = read_whole(&packed[..packed.len() / 2]);
    assert!(cut.packets.len().abs_diff(150) < 30);
}

#[test]
fn a_stream_changed_in_the_middle_gives_the_packets_before() {
    let plain = file(20_000);
    let whole = read_whole(&plain);
    for (_, compress) in ALL {
        let mut packed = compress(&plain);
        let middle = packed.len() / 2;
        packed[middle..middle + 64].fill(0xff);
        let changed = read_whole(&packed);
        let (_, fault) = changed.first.expect("a fault");
        let count = changed.packets.iter().zip(&whole.packets);
        let right = count.take_while(|(ours, theirs)| ours == theirs).count();
        assert!((8000..12_000).contains(&right), "{right} packets");
        // The output may turn out not to be pcap before the input turns out not to be deflate.
        assert_eq!(fault.effect(), Effect::Ended);
    }
}

#[test]
fn a_short_gzip_stream_gives_all_packets_before_its_fault_in_whatever_portions_it_is_read() {
    let plain = file(60);
    // RFC 1951, section 3.2: a stored block that is not the last one, then a block of the reserved type 3.
    let length = plain.len() as u16;
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(&plain);
    packed.push(0x07);
    packed.extend([0; 40]);
    let whole = read_whole(&packed);
    assert_eq!(whole.packets, read_whole(&plain).packets);
    let end = plain.len() as u64;
    assert_eq!(whole.first, Some((end, Fault::CompressionCorrupt)));
    for step in [1, 7, 30] {
        let octets = &packed[..];
        let again = read(Dribble { octets, step }).expect("pcap");
        assert_eq!(again, whole, "{step}");
    }
}

#[test]
fn a_wrong_checksum_and_what_follows_the_stream_are_faults_after_all_packets() {
    let plain = file(10);
    let packed = gzip(&plain);
    let mut checksum = packed.clone();
    checksum[packed.len() - 8] ^= 1;
    let mut length = packed.clone();
    length[packed.len() - 1] ^= 1;
    let followed = [&packed[..], b"not gzip at all"].concat();
    let followed_zstd = [&zstd(&plain)[..], b"not zstd at all"].concat();
    for bad in [checksum, length, followed, followed_zstd] {
        let whole = read_whole(&bad);
        assert_eq!(whole.packets, read_whole(&plain).packets);
        let end = plain.len() as u64;
        assert_eq!(whole.first, Some((end, Fault::CompressionCorrupt)));
    }
}

#[test]
fn nothing_to_decompress_and_other_compressions_are_errors() {
    for (compression, compress) in ALL {
        let packed = compress(&file(1));
        let error = read(&packed[..8]).expect_err("cut short");
        assert!(matches!(error, OpenError::Corrupt(found) if found == compression));
        assert!(matches!(read(&compress(b"")[..]), Err(OpenError::Empty)));
    }
    for (magic, name) in [
        (&b"\x02\x21\x4c\x18\x64\x40"[..], "lz4's legacy format"),
        (b"\x1f\x9d\x90abc", "compress"),
    ] {
        let error = read(magic).expect_err("not supported");
        assert!(matches!(error, OpenError::UnsupportedCompression(found) if found == name));
    }
}

#[test]
fn an_error_of_the_source_comes_after_the_packets_before_it() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            Err(match self.0 {
                1 => std::io::ErrorKind::Interrupted.into(),
                _ => std::io::ErrorKind::ConnectionReset.into(),
            })
        }
    }
    let plain = file(3);
    let mut reader = Reader::new((&plain[..]).chain(Failing(0))).expect("pcap");
    let mut block = capfile::Block::new();
    let mut packets = 0;
    let error = loop {
        match reader.read_block(&mut block) {
            Ok(more) => assert!(more),
            Err(error) => break error,
        }
        packets += block.records().len();
    };
    assert_eq!(packets, 3);
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(!reader.read_block(&mut block).expect("nothing follows"));
}
