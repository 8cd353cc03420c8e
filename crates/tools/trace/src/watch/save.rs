//! `-O`: writes the packets of the chosen connections as pcap. Each is the innermost IP packet in an Ethernet frame
//! with zero addresses, as in tcptrace.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use capfile::{PcapWriter, Resolution};
use trace::Seen;
use wire::link::LinkType;

/// The file.
pub(super) struct Save {
    path: PathBuf,
    out: PcapWriter<BufWriter<File>>,
    frame: Vec<u8>,
    /// Packets that pcap cannot hold.
    left_out: u64,
    wrong: Option<io::Error>,
}

impl Save {
    /// # Errors
    /// The file cannot be created.
    pub(super) fn new(path: &Path) -> Result<Save> {
        let out = File::create(path).and_then(|file| {
            let out = BufWriter::with_capacity(1 << 18, file);
            PcapWriter::new(out, LinkType::ETHERNET, Resolution::Nanos)
        });
        Ok(Save {
            path: path.to_owned(),
            out: out.with_context(|| format!("cannot write {}", path.display()))?,
            frame: Vec::new(),
            left_out: 0,
            wrong: None,
        })
    }

    pub(super) fn packet(&mut self, seen: &Seen<'_, '_>) {
        if self.wrong.is_some() {
            return;
        }
        let packet = seen.packet;
        self.frame.clear();
        self.frame.extend_from_slice(&[0; 12]);
        let ethertype: [u8; 2] = if packet.version == 6 {
            [0x86, 0xdd]
        } else {
            [0x08, 0x00]
        };
        self.frame.extend_from_slice(&ethertype);
        self.frame.extend_from_slice(packet.network);
        // The captured part of the packet, and the part of the transport that the capture lacks.
        let missing = packet.transport_length as usize;
        let missing = missing.saturating_sub(packet.transport.len());
        let length = (self.frame.len() + missing) as u32;
        match self.out.write(seen.record.time_ns, length, &self.frame) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.left_out += 1,
            Err(error) => self.wrong = Some(error),
        }
    }

    /// # Errors
    /// The file could not be written.
    pub(super) fn finish(self) -> Result<()> {
        let wrote = match self.wrong {
            Some(error) => Err(error),
            None => self.out.into_inner().flush(),
        };
        if self.left_out > 0 {
            eprintln!(
                "headend: {}: {} packets cannot be represented in pcap and were left out",
                self.path.display(),
                self.left_out
            );
        }
        wrote.with_context(|| format!("cannot write {}", self.path.display()))
    }
}
