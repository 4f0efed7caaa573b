//! Fields for the heads of requests (`http_read_headers`, `http_write_headers`, `http_trim_headers`).

/// The maximum number of fields of a request.
const MOST: usize = 16;

/// Parses `NAME: VALUE, NAME: VALUE`, with `\\,` for a comma in a value. Names become lower case.
pub(super) fn fields(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let escaped = text.replace("\\,", "\0");
    for item in escaped.split(',') {
        let item = item.trim().replace('\0', ",");
        let (name, value) = item.split_once(':').ok_or_else(|| {
            format!("\"{item}\" is no field: give NAME: VALUE, and \\, for a comma in a value")
        })?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Err(format!("\"{name}\" is no name of a field: it has letters, digits, and hyphens"));
        }
        if value.contains(|sign: char| !sign.is_ascii() || sign.is_control()) {
            return Err(format!("{name}: a value has printable characters of ASCII"));
        }
        if let Some(whose) = belongs_to(&name) {
            return Err(format!("{name}: {whose}"));
        }
        if fields.iter().any(|(known, _)| *known == name) {
            return Err(format!("{name} is given twice"));
        }
        fields.push((name, value.to_owned()));
    }
    if fields.len() > MOST {
        return Err(format!("there are more than {MOST} fields"));
    }
    Ok(fields)
}

/// Why a field cannot be given: it is that of another option, or of the client itself.
fn belongs_to(name: &str) -> Option<&'static str> {
    Some(match name {
        "host" => "http_host gives it",
        "authorization" | "x-auth-token" | "x-amz-security-token" => "the options of users and keys give it",
        "x-amz-storage-class" => "http_s3_storage_class gives it",
        _ if name.starts_with("x-amz-server-side-encryption-customer") => "http_s3_sse_customer_key gives it",
        _ if name.starts_with("x-amz-checksum") => "http_s3_checksum gives it",
        "range"
        | "content-length"
        | "transfer-encoding"
        | "connection"
        | "expect"
        | "x-amz-date"
        | "x-amz-content-sha256" => "requests have their own",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_separated_by_commas() {
        let found = fields("X-Amz-Tagging: a=1&b=2 , x-amz-meta-list:1\\, 2,If-Match: \"t:1\"").unwrap();
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected =
            [of("x-amz-tagging", "a=1&b=2"), of("x-amz-meta-list", "1, 2"), of("if-match", "\"t:1\"")];
        assert_eq!(found, expected);
    }

    #[test]
    fn mistakes_in_fields_are_named() {
        let many: Vec<String> = (0..17).map(|number| format!("x-{number}: 1")).collect();
        for (text, why) in [
            ("x-amz-tagging", "is no field"),
            ("a b: c", "is no name of a field"),
            (": c", "is no name of a field"),
            ("a: \u{7}", "printable"),
            ("Host: h", "http_host gives it"),
            ("Authorization: x", "users and keys"),
            ("x-amz-checksum-crc32c: x", "http_s3_checksum gives it"),
            ("Content-Length: 1", "requests have their own"),
            ("a: 1, A: 2", "a is given twice"),
            (&many.join(","), "more than 16"),
        ] {
            assert!(fields(text).unwrap_err().contains(why), "{text}");
        }
    }
}
