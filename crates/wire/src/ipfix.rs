//! IPFIX messages (RFC 7011): template sets and data records of a fixed length, written and read.
//!
//! Left out: options templates, variable lengths and structured data are not written; a reader skips their sets. Start
//! reading at [`Writer`] and [`Message::parse`].

/// The version in a message's header.
pub const VERSION: u16 = 10;
/// Octets of a message's header.
pub const HEADER: usize = 16;
/// The set ID of templates.
pub const TEMPLATE_SET: u16 = 2;
/// The least ID of a template, which is also that of its data sets.
pub const TEMPLATE_MIN: u16 = 256;
/// The longest message.
pub const MESSAGE_MAX: usize = 65_535;

/// A field of a template: an information element of IANA's registry, and its length in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The element's number, below 32,768.
    pub element: u16,
    /// Its length; 65,535 for a variable one.
    pub length: u16,
    /// The enterprise whose element it is; `None` for IANA's.
    pub enterprise: Option<u32>,
}

impl Field {
    /// An element of IANA's registry.
    #[must_use]
    pub const fn new(element: u16, length: u16) -> Self {
        Self {
            element,
            length,
            enterprise: None,
        }
    }
}

/// Writes one message at the end of a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// Where the open set starts.
    set: Option<usize>,
}

impl<'a> Writer<'a> {
    /// Starts a message. `export_s` is in seconds since 1970; `sequence` counts the data records of earlier messages of this
    /// domain (RFC 7011 section 3.1).
    pub fn new(out: &'a mut Vec<u8>, export_s: u32, sequence: u32, domain: u32) -> Self {
        let start = out.len();
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&export_s.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        out.extend_from_slice(&domain.to_be_bytes());
        let set = None;
        Self { out, start, set }
    }

    /// Octets of the message so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether there is nothing but the header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == HEADER
    }

    fn open(&mut self, id: u16) {
        self.close();
        self.set = Some(self.out.len());
        self.out.extend_from_slice(&id.to_be_bytes());
        self.out.extend_from_slice(&[0; 2]);
    }

    fn close(&mut self) {
        if let Some(start) = self.set.take() {
            let length = (self.out.len() - start) as u16;
            self.out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }

    /// Adds a set with these templates, each an ID from [`TEMPLATE_MIN`] on and its fields (RFC 7011 section 3.4.1).
    pub fn templates(&mut self, templates: &[(u16, &[Field])]) {
        self.open(TEMPLATE_SET);
        for (id, fields) in templates {
            self.out.extend_from_slice(&id.to_be_bytes());
            let count = fields.len() as u16;
            self.out.extend_from_slice(&count.to_be_bytes());
            for field in *fields {
                let bit = if field.enterprise.is_some() {
                    0x8000
                } else {
                    0
                };
                let element = field.element & 0x7fff | bit;
                self.out.extend_from_slice(&element.to_be_bytes());
                self.out.extend_from_slice(&field.length.to_be_bytes());
                if let Some(enterprise) = field.enterprise {
                    self.out.extend_from_slice(&enterprise.to_be_bytes());
                }
            }
        }
        self.close();
    }

    /// Adds a set of data records of this template. The caller keeps the message within [`MESSAGE_MAX`].
    pub fn data(&mut self, template: u16, records: &[u8]) {
        self.open(template.max(TEMPLATE_MIN));
        self.out.extend_from_slice(records);
        self.close();
    }

    /// Ends the message.
    pub fn finish(mut self) {
        self.close();
        let length = (self.len().min(MESSAGE_MAX)) as u16;
        let at = self.start + 2;
        self.out[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// Why bytes are not an IPFIX message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IpfixError {
    /// Shorter than its header, or than its length says.
    #[error("shorter than it says")]
    Truncated,
    /// Another version.
    #[error("IPFIX version {0}")]
    Version(u16),
    /// The length is below the header's.
    #[error("message length {0}")]
    Length(u16),
    /// A set is shorter than its header, or runs past the message's end.
    #[error("set length {0}")]
    SetLength(u16),
    /// A template runs past its set's end.
    #[error("template {0} cut short")]
    Template(u16),
}

/// A message that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// When it was exported, in seconds since 1970.
    pub export_s: u32,
    /// Data records of earlier messages.
    pub sequence: u32,
    /// The observation domain.
    pub domain: u32,
    sets: &'a [u8],
}

/// A set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// 2 for templates, 256 and more for data; others are kept.
    pub id: u16,
    /// What is behind its header.
    pub content: &'a [u8],
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    let two = octets.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

fn long(octets: &[u8], at: usize) -> Option<u32> {
    let four = octets.get(at..at + 4)?;
    Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

impl<'a> Message<'a> {
    /// Reads the header of the message that starts at the first byte. Also returns what is behind the message, for streams
    /// of messages.
    ///
    /// # Errors
    /// See [`IpfixError`].
    pub fn parse(octets: &'a [u8]) -> Result<(Self, &'a [u8]), IpfixError> {
        let version = word(octets, 0).ok_or(IpfixError::Truncated)?;
        if version != VERSION {
            return Err(IpfixError::Version(version));
        }
        let length = word(octets, 2).ok_or(IpfixError::Truncated)?;
        if usize::from(length) < HEADER {
            return Err(IpfixError::Length(length));
        }
        let split = octets.split_at_checked(length.into());
        let (message, rest) = split.ok_or(IpfixError::Truncated)?;
        let field = |at| long(message, at).ok_or(IpfixError::Truncated);
        let message = Self {
            export_s: field(4)?,
            sequence: field(8)?,
            domain: field(12)?,
            sets: &message[HEADER..],
        };
        Ok((message, rest))
    }

    /// The sets, up to the first fault.
    pub fn sets(&self) -> impl Iterator<Item = Result<Set<'a>, IpfixError>> + use<'a> {
        let mut rest = self.sets;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let octets = core::mem::take(&mut rest);
            let (Some(id), Some(length)) = (word(octets, 0), word(octets, 2)) else {
                return Some(Err(IpfixError::SetLength(octets.len() as u16)));
            };
            match octets.split_at_checked(length.into()) {
                Some((set, after)) if length >= 4 => {
                    rest = after;
                    let content = &set[4..];
                    Some(Ok(Set { id, content }))
                }
                _ => Some(Err(IpfixError::SetLength(length))),
            }
        })
    }
}

impl<'a> Set<'a> {
    /// The templates of a template set: IDs and fields. Padding of fewer than four octets is skipped.
    ///
    /// # Errors
    /// A template that runs past the end.
    pub fn templates(&self) -> Result<Vec<(u16, Vec<Field>)>, IpfixError> {
        let mut all = Vec::new();
        let mut at = 0;
        while at + 4 <= self.content.len() {
            let id = word(self.content, at).unwrap_or_default();
            let count = word(self.content, at + 2).unwrap_or_default();
            at += 4;
            let mut fields = Vec::new();
            for _ in 0..count {
                let fault = IpfixError::Template(id);
                let element = word(self.content, at).ok_or(fault)?;
                let length = word(self.content, at + 2).ok_or(fault)?;
                at += 4;
                let mut enterprise = None;
                if element & 0x8000 != 0 {
                    enterprise = Some(long(self.content, at).ok_or(fault)?);
                    at += 4;
                }
                fields.push(Field {
                    element: element & 0x7fff,
                    length,
                    enterprise,
                });
            }
            all.push((id, fields));
        }
        Ok(all)
    }

    /// The records of a data set whose template has these fields, each of a fixed length. Padding shorter than a record is
    /// skipped. There is none if a length is variable or all are 0.
    pub fn records(&self, fields: &[Field]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let is_fixed = fields.iter().all(|field| field.length != u16::MAX);
        let length: usize = fields.iter().map(|field| usize::from(field.length)).sum();
        let content = if is_fixed { self.content } else { &[] };
        content.chunks_exact(length.max(1)).take(match length {
            0 => 0,
            _ => usize::MAX,
        })
    }
}

/// The value of an unsigned element of up to eight octets in a record (RFC 7011 section 6.1.1; shorter encodings as in 6.2).
#[must_use]
pub fn value(fields: &[Field], record: &[u8], element: u16) -> Option<u64> {
    let mut at = 0;
    for field in fields {
        let length = usize::from(field.length);
        if field.element == element && field.enterprise.is_none() && length <= 8 {
            let octets = record.get(at..at + length)?;
            let value = octets.iter();
            return Some(value.fold(0, |value, &octet| value << 8 | u64::from(octet)));
        }
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Field; 3] = [
        Field::new(323, 8),
        Field {
            element: 7,
            length: 2,
            enterprise: Some(32_473),
        },
        Field::new(8, 4),
    ];

    #[test]
    fn a_message_has_the_octets_of_rfc_7011() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 0x0102_0304, 7, 9);
        writer.templates(&[(256, &[Field::new(8, 4)])]);
        writer.data(256, &[192, 0, 2, 1]);
        writer.finish();
        let want = [
            0, 10, 0, 36, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 9, // header
            0, 2, 0, 12, 1, 0, 0, 1, 0, 8, 0, 4, // template set
            1, 0, 0, 8, 192, 0, 2, 1, // data set
        ];
        assert_eq!(out, want);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 1, 2, 3);
        assert!(writer.is_empty());
        writer.templates(&[(300, &FIELDS)]);
        writer.data(300, &[0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 192, 0, 2, 1, 0xff]);
        writer.finish();
        out.push(99);
        let (message, rest) = Message::parse(&out).expect("a message");
        assert_eq!(
            (message.export_s, message.sequence, message.domain),
            (1, 2, 3)
        );
        assert_eq!(rest, [99]);
        let sets: Result<Vec<_>, _> = message.sets().collect();
        let sets = sets.expect("whole sets");
        let templates = sets[0].templates().expect("whole templates");
        assert_eq!(templates, [(300, FIELDS.to_vec())]);
        let records: Vec<_> = sets[1].records(&FIELDS).collect();
        assert_eq!(records.len(), 1, "padding is no record");
        assert_eq!(value(&FIELDS, records[0], 323), Some(5));
        assert_eq!(value(&FIELDS, records[0], 8), Some(0xc000_0201));
        assert_eq!(value(&FIELDS, records[0], 7), None, "of an enterprise");
    }

    #[test]
    fn faults_are_named() {
        let parse = |octets: &[u8]| Message::parse(octets).map(|_| ());
        assert_eq!(parse(&[0, 9, 0, 16]), Err(IpfixError::Version(9)));
        assert_eq!(parse(&[0, 10, 0, 15]), Err(IpfixError::Length(15)));
        assert_eq!(parse(&[0, 10, 0, 16]), Err(IpfixError::Truncated));
        let mut octets = vec![0, 10, 0, 20];
        octets.resize(16, 0);
        octets.extend([0, 2, 0, 3]);
        let (message, _) = Message::parse(&octets).expect("a header");
        let sets: Vec<_> = message.sets().collect();
        assert_eq!(sets, [Err(IpfixError::SetLength(3))]);
    }
}
