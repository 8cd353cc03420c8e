//! Writes pcapng (draft-ietf-opsawg-pcapng): one section, little-endian, with time stamps in nanoseconds.

use std::io::{self, Write};

use wire::link::LinkType;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// `opt_endofopt`, which ends the options of a block.
const END_OF_OPTIONS: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Direction of a packet at the interface (`epb_flags`, bits 0 and 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It came in.
    Inbound,
    /// It went out.
    Outbound,
}

/// Writes a pcapng file, a block at a time: give it a buffered writer, or memory.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    block: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section's header; `application` is the name of the writing program.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = PcapngWriter {
            out,
            block: Vec::new(),
            interfaces: 0,
        };
        writer.begin(SECTION_HEADER);
        writer.u32(0x1a2b_3c4d);
        // Version 1.0, and a section without a length.
        writer.block.extend_from_slice(&[1, 0, 0, 0]);
        writer.block.extend_from_slice(&[0xff; 8]);
        writer.option(SHB_USERAPPL, application.as_bytes());
        writer.option(END_OF_OPTIONS, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface and returns its number. A `snap` of 0 means that packets are
    /// complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn interface(
        &mut self,
        link: LinkType,
        name: &str,
        description: &str,
        snap: u32,
    ) -> io::Result<u32> {
        self.begin(INTERFACE_DESCRIPTION);
        self.u32(u32::from(link.0));
        self.u32(snap);
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_DESCRIPTION, description.as_bytes());
        self.option(IF_TSRESOL, &[9]);
        self.option(END_OF_OPTIONS, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet of `length` octets, of which these were captured, at a time in ns since 1970.
    ///
    /// # Errors
    /// It cannot be written, or is longer than 4 GiB or of an interface that was not described
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput)).
    pub fn packet(
        &mut self,
        interface: u32,
        time_ns: u64,
        way: Way,
        length: u32,
        octets: &[u8],
    ) -> io::Result<()> {
        self.check(interface)?;
        let captured = u32::try_from(octets.len())
            .ok()
            .filter(|captured| *captured < u32::MAX - 64)
            .ok_or_else(|| invalid("the packet is too long"))?;
        self.begin(ENHANCED_PACKET);
        self.u32(interface);
        self.time(time_ns);
        self.u32(captured);
        self.u32(length);
        self.padded(octets);
        let flags: u32 = match way {
            Way::Inbound => 1,
            Way::Outbound => 2,
        };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    /// Records how many packets an interface had up to a time in ns since 1970, and how many of
    /// them were lost for want of room.
    ///
    /// # Errors
    /// It cannot be written, or the interface was not described
    /// ([`InvalidInput`](io::ErrorKind::InvalidInput)).
    pub fn statistics(
        &mut self,
        interface: u32,
        time_ns: u64,
        received: u64,
        dropped: u64,
    ) -> io::Result<()> {
        self.check(interface)?;
        self.begin(INTERFACE_STATISTICS);
        self.u32(interface);
        self.time(time_ns);
        self.option(ISB_IFRECV, &received.to_le_bytes());
        self.option(ISB_IFDROP, &dropped.to_le_bytes());
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The writer.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    fn check(&self, interface: u32) -> io::Result<()> {
        if interface < self.interfaces {
            Ok(())
        } else {
            Err(invalid("the interface was not described"))
        }
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        // Its length, once that is known.
        self.u32(0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        self.out.write_all(&self.block)
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn time(&mut self, time_ns: u64) {
        self.u32((time_ns >> 32) as u32);
        self.u32(time_ns as u32);
    }

    fn padded(&mut self, octets: &[u8]) {
        self.block.extend_from_slice(octets);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// A value longer than an option can have is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block
            .extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.padded(value);
    }
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
