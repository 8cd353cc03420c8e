//! Counts the packets of capture files, and names their faults. Without a file, it writes a small capture and reads
//! that.
//!
//! `cargo run -p headend-capfile --example count [FILE...]`
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Read;

use capfile::{Block, PcapWriter, Reader, Resolution};
use wire::link::LinkType;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, Resolution::Nanos)?;
        writer.write(1_000_000_000, 60, &[0; 60])?;
        writer.write(2_000_000_000, 1_500, &[0; 96])?;
        return count("a capture in memory", &writer.into_inner()[..]);
    }
    for path in paths {
        count(&path, File::open(&path)?)?;
    }
    Ok(())
}

fn count(name: &str, source: impl Read) -> Outcome {
    let mut reader = Reader::new(source)?;
    let (mut packets, mut bytes) = (0_u64, 0_u64);
    let mut block = Block::new();
    // A block is reused: the records refer to its bytes, and nothing is copied.
    while reader.read_block(&mut block)? {
        packets += block.records().len() as u64;
        bytes += block
            .records()
            .iter()
            .map(|record| u64::from(record.length))
            .sum::<u64>();
    }
    println!(
        "{name}: {:?}, {packets} packets, {bytes} bytes",
        reader.format()
    );
    for (fault, count) in reader.faults().iter() {
        println!("  {count} times: {fault}");
    }
    Ok(())
}
