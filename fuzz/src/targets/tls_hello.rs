//! The first message of TLS: what is read lies within the stream, and a longer prefix gives no other hello.

use wire::tls::{NoHello, hello, hello_in_records};

/// Takes the start of a stream.
///
/// # Panics
/// If a prefix has another hello than the stream, or a name is not part of it.
pub fn target(data: &[u8]) {
    let (mut scratch, mut other) = (Vec::new(), Vec::new());
    let whole = hello_in_records(data, &mut scratch);
    let cut = hello_in_records(&data[..data.len() / 2], &mut other);
    match cut {
        // What a prefix has is final.
        Ok(_) | Err(NoHello::Other) => assert_eq!(cut, whole),
        Err(NoHello::Incomplete) => {}
    }
    for found in [whole, hello(data)].into_iter().flatten() {
        let length: usize = found.protocols().map(|name| name.len() + 1).sum();
        assert!(length <= data.len());
        if let Some(name) = found.server_name {
            assert!(name.len() < data.len() && name.bytes().all(|octet| octet.is_ascii_graphic()));
        }
    }
}
