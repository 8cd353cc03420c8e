//! MRT files: read at once and in small portions, written, and read again.

use std::io::{self, Read};

use capfile::mrt::{Body, Fault, Reader, Record, What, Writer};

/// A source that returns few octets at a time.
struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.len().min(out.len()).min(7);
        out[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// The result of reading: each record as text, and each fault; finally, whether the compression was at fault.
fn read(source: impl Read, mut each: impl FnMut(&Record<'_>)) -> (Vec<String>, bool) {
    let mut met = Vec::new();
    let mut is_broken = false;
    let Ok(mut reader) = Reader::open(source) else {
        return (met, true);
    };
    loop {
        match reader.next_record() {
            Ok(None) => return (met, is_broken),
            Ok(Some(record)) => {
                each(&record);
                met.push(format!("{record:?}"));
            }
            Err(Fault {
                what: What::Compression(_),
                ..
            }) => is_broken = true,
            Err(fault) => met.push(fault.to_string()),
        }
    }
}

/// No bytes cause a panic; reading in portions gives the same result; written records read back the same.
///
/// # Panics
/// If that does not hold.
pub fn target(input: &[u8]) {
    let (whole, is_broken) = read(input, again);
    let (dribbled, _) = read(Dribble(input), |_| {});
    // For a corrupt stream, the number of records before the fault may differ.
    let count = whole.len().min(dribbled.len());
    assert_eq!(whole[..count], dribbled[..count]);
    assert!(is_broken || whole.len() == dribbled.len());
}

fn again(record: &Record<'_>) {
    let mut writer = Writer::new(Vec::new());
    let done = match &record.body {
        Body::PeerIndexTable(table) => writer.peer_index_table(record.time.s, table),
        Body::Rib(rib) if !rib.is_multicast => {
            let (sequence, prefix) = (rib.sequence, rib.prefix);
            writer.rib(record.time.s, sequence, prefix, rib.add_path, rib.entries())
        }
        Body::Message(message) => writer.message(record.time, message),
        Body::StateChange(change) => writer.state_change(record.time, change),
        Body::Rib(_) | Body::RibGeneric { .. } | Body::TableDump(_) | Body::Unknown { .. } => {
            return;
        }
    };
    done.expect("what was read has room");
    let octets = writer.into_inner();
    let mut reader = Reader::open(&octets[..]).expect("not compressed");
    let read = reader.next_record().expect("a record of ours");
    let read = read.expect("a record");
    assert_eq!((read.time, &read.body), (record.time, &record.body));
}
