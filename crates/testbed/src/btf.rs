//! Reads the members of a C structure from BTF, the type information that BPF programs carry
//! (Linux, Documentation/bpf/btf.rst).

/// Length of `struct btf_header` up to and including `str_len`, bytes.
const HEADER: usize = 24;
/// `btf_type`: `name_off`, `info`, `size` or `type`, bytes.
const TYPE: usize = 12;
/// Arrays of more elements than this are not read: they are histories.
const MAX_ELEMENTS: u32 = 8;

/// A number in a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The path to it, such as `common.state` or `best[0].bw`.
    pub(crate) name: String,
    /// Bytes from the beginning of the structure.
    offset: usize,
    /// Length, bytes.
    size: usize,
}

impl Field {
    /// The value in a structure; 0 beyond its end.
    pub(crate) fn value(&self, structure: &[u8]) -> u64 {
        let Some(bytes) = structure.get(self.offset..self.offset + self.size) else { return 0 };
        match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }
}

/// A type of BTF.
#[derive(Clone, Copy)]
struct Type {
    kind: u32,
    /// Number of members.
    vlen: usize,
    /// Size in bytes, or another type's number.
    size_or_type: u32,
    /// Offset of what follows, bytes.
    data_at: usize,
}

/// BTF with the offsets of its types.
struct Btf<'a> {
    bytes: &'a [u8],
    strings: usize,
    types: Vec<Type>,
}

/// The integers in the structure of type `id`, those of nested structures included. `None` if the
/// bytes are not BTF.
pub(crate) fn fields(bytes: &[u8], id: u32) -> Option<Vec<Field>> {
    let btf = Btf::parse(bytes)?;
    let mut fields = Vec::new();
    btf.collect(id, "", 0, &mut fields)?;
    Some(fields)
}

impl<'a> Btf<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Btf<'a>> {
        let mut btf = Btf { bytes, strings: 0, types: Vec::new() };
        if bytes.len() < HEADER || bytes[..2] != 0xeb9f_u16.to_ne_bytes() {
            return None;
        }
        let header = btf.u32(4)? as usize;
        let mut at = header + btf.u32(8)? as usize;
        let end = at + btf.u32(12)? as usize;
        btf.strings = header + btf.u32(16)? as usize;
        // Number 0 is void.
        btf.types.push(Type { kind: 0, vlen: 0, size_or_type: 0, data_at: 0 });
        while at < end {
            let (info, size_or_type) = (btf.u32(at + 4)?, btf.u32(at + 8)?);
            let (kind, vlen) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            btf.types.push(Type { kind, vlen, size_or_type, data_at: at + TYPE });
            at += TYPE + Btf::length_of_data(kind, vlen);
        }
        Some(btf)
    }

    /// Bytes that follow a `btf_type` of a kind.
    fn length_of_data(kind: u32, vlen: usize) -> usize {
        match kind {
            1 | 14 | 17 => 4,             // integer, variable, declaration tag
            3 => 12,                      // array
            4 | 5 | 15 | 19 => 12 * vlen, // structure, union, section, 64-bit enumeration
            6 | 13 => 8 * vlen,           // enumeration, prototype
            _ => 0,
        }
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn string(&self, offset: u32) -> Option<&'a str> {
        let bytes = self.bytes.get(self.strings + offset as usize..)?;
        let end = bytes.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }

    /// Size of a type and the type itself, without names and qualifiers.
    fn resolve(&self, id: u32) -> Option<(Type, usize)> {
        let one = *self.types.get(id as usize)?;
        match one.kind {
            8..=11 | 18 => self.resolve(one.size_or_type),
            3 => {
                let (_, size) = self.resolve(self.u32(one.data_at)?)?;
                Some((one, size * self.u32(one.data_at + 8)? as usize))
            }
            _ => Some((one, one.size_or_type as usize)),
        }
    }

    /// Appends the integers of a type at an offset.
    fn collect(&self, id: u32, name: &str, offset: usize, fields: &mut Vec<Field>) -> Option<()> {
        let (one, size) = self.resolve(id)?;
        match one.kind {
            1 | 6 if size <= 8 => fields.push(Field { name: name.to_owned(), offset, size }),
            3 => {
                let (element, length) = (self.u32(one.data_at)?, self.u32(one.data_at + 8)?);
                let (_, size) = self.resolve(element)?;
                for index in 0..if length <= MAX_ELEMENTS { length } else { 0 } {
                    let at = offset + index as usize * size;
                    self.collect(element, &format!("{name}[{index}]"), at, fields)?;
                }
            }
            4 => {
                for member in 0..one.vlen {
                    let at = one.data_at + 12 * member;
                    // With bit fields the upper byte is their size; ours have none.
                    let bits = self.u32(at + 8)? & 0x00ff_ffff;
                    let own = self.string(self.u32(at)?)?;
                    let path =
                        if name.is_empty() { own.to_owned() } else { format!("{name}.{own}") };
                    self.collect(self.u32(at + 4)?, &path, offset + bits as usize / 8, fields)?;
                }
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The BTF of `struct { u32 a; struct { u8 b; u16 c[2]; } in; }`, number 5.
    fn example() -> Vec<u8> {
        let strings = b"\0u32\0u8\0u16\0a\0b\0c\0in\0";
        let of = |name: &[u8]| {
            strings.windows(name.len()).position(|one| one == name).unwrap_or_default() as u32
        };
        let structure = |vlen: u32, size: u32| [0, 4 << 24 | vlen, size];
        let words = [
            &[of(b"u32\0"), 1 << 24, 4, 32][..], // 1
            &[of(b"u8\0"), 1 << 24, 1, 8],       // 2
            &[of(b"u16\0"), 1 << 24, 2, 16],     // 3
            &[0, 3 << 24, 0, 3, 1, 2],           // 4: u16[2]
            &structure(2, 12),                   // 5
            &[of(b"a\0"), 1, 0, of(b"in\0"), 6, 32],
            &structure(2, 6), // 6
            &[of(b"b\0"), 2, 0, of(b"c\0"), 4, 16],
        ]
        .concat();
        let length = 4 * words.len() as u32;
        let mut bytes = 0xeb9f_u16.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [24, 0, length, length, strings.len() as u32].iter().chain(&words) {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn members_of_nested_structures_have_their_paths_and_values() {
        let fields = fields(&example(), 5).expect("it is BTF");
        let mut structure = 0x0102_0304_u32.to_ne_bytes().to_vec();
        structure.extend([7, 0]);
        structure.extend(500_u16.to_ne_bytes());
        structure.extend(600_u16.to_ne_bytes());
        let shown: Vec<(&str, u64)> =
            fields.iter().map(|field| (&*field.name, field.value(&structure))).collect();
        let expected = [("a", 0x0102_0304), ("in.b", 7), ("in.c[0]", 500), ("in.c[1]", 600)];
        assert_eq!(shown, expected);
    }

    #[test]
    fn bytes_that_are_not_btf_have_no_members() {
        assert_eq!(fields(&[], 1), None);
        assert_eq!(fields(&[0; 64], 1), None);
        assert_eq!(fields(&example()[..60], 5), None);
        assert_eq!(fields(&example(), 99), None);
    }
}
