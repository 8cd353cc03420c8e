//! Observers of single packets.

use capfile::Record;
use wire::packet::Packet;
use wire::tcp::Tcp;

use crate::analyzer::{Analyzer, Finished};
use crate::capture::Error;
use crate::connection::Connection;
use crate::segment::Segment;
use crate::verdict::Verdict;

/// A packet with an IP header.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a, 'p> {
    /// Its number among the IP packets of the input, from 1.
    pub number: u64,
    /// Its record in the capture file.
    pub record: &'a Record,
    /// The captured bytes of its frame.
    pub frame: &'p [u8],
    /// The decoded headers.
    pub packet: &'a Packet<'p>,
    /// For [`Watch::other`]: the number that keeps flows in different tunnels apart, for [`crate::udp::Datagram`].
    pub realm: u32,
}

/// A checksum that [`Options::checksums`](crate::Options::checksums) verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The header checksum of IPv4.
    Ip,
    /// TCP's.
    Tcp,
    /// UDP's.
    Udp,
}

/// Observes single packets, and connections as they finish. Every method but the error type has a default that does
/// nothing.
pub trait Watch {
    /// False if the observer needs no packets, only finished connections: the analysis then runs in batches, which is
    /// faster.
    const PACKETS: bool = true;

    /// False if [`Watch::finished`] returns all connections as they are. The analysis then does not call it for those
    /// that the capture's end finishes.
    const FINISHED: bool = true;

    /// Why the observer ends the analysis.
    type Error: From<Error>;

    /// The following packets are from this file, counted from 0 in the order of [`Captures::files`](crate::Captures::files).
    fn set_file(&mut self, _file: u32) {}

    /// An IP packet, before it is analysed.
    fn packet(&mut self, _seen: &Seen<'_, '_>) {}

    /// An IP packet with a wrong checksum. It is not analysed.
    fn bad_checksum(&mut self, _seen: &Seen<'_, '_>, _which: Checksum) {}

    /// An IP packet that is not a TCP segment.
    fn other(&mut self, _seen: &Seen<'_, '_>) {}

    /// A TCP segment, after its connection's statistics include it.
    fn segment(
        &mut self,
        _seen: &Seen<'_, '_>,
        _tcp: &Tcp<'_>,
        _connection: &Connection,
        _segment: &Segment,
        _verdict: &Verdict,
    ) {
    }

    /// The analysis has finished a block of records, some hundreds or thousands of packets.
    ///
    /// # Errors
    /// The observer ends the analysis.
    fn block(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// As [`Watch::block`], with the connections: [`Analyzer::recent`] has those with packets of late.
    ///
    /// # Errors
    /// The observer ends the analysis.
    fn look(&mut self, _analyzer: &mut Analyzer) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Connections have finished. Returns those that [`Findings`](crate::Findings) shall list. The last packet so far
    /// was captured at `end`, in nanoseconds since 1970.
    ///
    /// # Errors
    /// The observer ends the analysis.
    fn finished(
        &mut self,
        finished: Vec<Finished>,
        _end: i64,
    ) -> Result<Vec<Finished>, Self::Error> {
        Ok(finished)
    }
}

/// Observes nothing.
impl Watch for () {
    const PACKETS: bool = false;
    const FINISHED: bool = false;
    type Error = Error;
}
