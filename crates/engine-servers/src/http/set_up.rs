//! Makes a client from the options of a job.

use crate::source::source_of;
use iolite_engine::is_asked_to_stop;
use iolite_http::{
    Basic, Checksum, Client, Credentials, CustomerKey, Digest, Endpoint, Headers, Limits, Protocol, S3,
    Signer, Source, Trust, User,
};
use iolite_options::engines::{
    Addressing, Authentication, Encryption, HostSelect, HttpOptions, HttpProtocol, ObjectChecksum, of_worker,
};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// These options with the region of the user's files, if the job gives neither region nor keys.
pub(super) fn with_region(options: &HttpOptions) -> HttpOptions {
    let mut options = options.clone();
    let is_signed = options.http_mode == HttpProtocol::S3 && !options.http_s3_anonymous;
    if is_signed
        && options.http_s3_keyid.is_empty()
        && !options.region_is_given
        && let Some(region) = source(&options).region()
    {
        options.http_s3_region = region;
    }
    options
}

/// Where to look up keys and the region that the job does not give.
fn source(options: &HttpOptions) -> Source {
    let profile = Some(options.http_s3_profile.as_str()).filter(|profile| !profile.is_empty());
    Source::of_process(profile)
}

/// Makes a client for the server, for this worker.
///
/// # Errors
/// An option is missing or wrong; the error says which.
pub(super) fn connect(options: &HttpOptions, worker: u32) -> Result<Client, String> {
    for (name, value) in [
        ("http_host", &options.http_host),
        ("http_user", &options.http_user),
        ("http_copy_source", &options.http_copy_source),
        ("http_s3_keyid", &options.http_s3_keyid),
        ("http_s3_region", &options.http_s3_region),
        ("http_s3_storage_class", &options.http_s3_storage_class),
        ("http_s3_sse_customer_algorithm", &options.http_s3_sse_customer_algorithm),
    ] {
        // (A line break would begin a new line in requests.)
        if value.contains(char::is_control) {
            return Err(format!("{name}: a line break, or another control character, is in it"));
        }
    }
    let encrypted = options.https != Encryption::Off;
    let hosts = match options.http_host_select {
        HostSelect::Worker => of_worker(&options.http_host, worker)?.into_iter().collect(),
        HostSelect::RoundRobin => options.hosts(),
    };
    let endpoints = hosts.iter().map(|host| Endpoint::parse(host, encrypted)).collect::<Result<_, _>>();
    let endpoints = endpoints.map_err(|error| format!("http_host: {error}"))?;
    let protocol = protocol(options)?;
    let limits = Limits {
        timeout: Some(options.http_timeout).filter(|&limit| limit > 0).map(Duration::from_micros),
        retries: options.http_retries,
        verbose: options.http_verbose,
    };
    let mut client =
        Client::new(endpoints, &protocol, &trust(options)?, limits).map_err(|error| error.to_string())?;
    client.stop_if(is_asked_to_stop);
    if let Some(source) = source_of(&options.bind, worker)? {
        client.connect_from(source).map_err(|error| error.to_string())?;
    }
    client.set_headers(&Headers {
        reads: options.http_read_headers.clone(),
        writes: options.http_write_headers.clone(),
        removals: options.http_trim_headers.clone(),
    });
    Ok(client)
}

fn trust(options: &HttpOptions) -> Result<Trust, String> {
    let file = |name: &str| Some(PathBuf::from(name)).filter(|path| !path.as_os_str().is_empty());
    let own = match (file(&options.http_cert_file), file(&options.http_key_file)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("http_cert_file and http_key_file go together".to_owned()),
    };
    if options.https == Encryption::Off && (own.is_some() || !options.http_ca_file.is_empty()) {
        return Err("http_ca_file, http_cert_file and http_key_file are for https=on".to_owned());
    }
    if options.https == Encryption::Insecure && !options.http_ca_file.is_empty() {
        return Err(
            "http_ca_file says whom to trust, and https=insecure trusts everybody; use https=on".to_owned()
        );
    }
    Ok(Trust {
        anybody: options.https == Encryption::Insecure,
        authorities: file(&options.http_ca_file),
        own,
    })
}

fn protocol(options: &HttpOptions) -> Result<Protocol, String> {
    Ok(match options.http_mode {
        HttpProtocol::WebDav => {
            let password = options.http_pass.given("http_pass")?.unwrap_or_default();
            let user = Some(&options.http_user).filter(|user| !user.is_empty());
            Protocol::WebDav(user.map(|user| match options.http_auth {
                Authentication::Basic => User::Basic(Basic::new(user, &password)),
                Authentication::Digest => User::Digest(Box::new(Digest::new(user, &password))),
            }))
        }
        HttpProtocol::Swift => Protocol::Swift(options.http_swift_auth_token.given("http_swift_auth_token")?),
        HttpProtocol::S3 => Protocol::S3(Box::new(s3(options)?)),
    })
}

fn s3(options: &HttpOptions) -> Result<S3, String> {
    let is_unsigned = options.http_s3_unsigned_payload;
    if is_unsigned && options.https == Encryption::Off {
        return Err("http_s3_unsigned_payload=1 needs https=on: nothing else protects bodies".to_owned());
    }
    let customer_key = options.http_s3_sse_customer_key.given("http_s3_sse_customer_key")?;
    let customer_key = customer_key.map(|key| {
        CustomerKey::new(&options.http_s3_sse_customer_algorithm, &key)
            .map_err(|why| format!("http_s3_sse_customer_key: {why}"))
    });
    let signer = match options.http_s3_anonymous {
        true => None,
        false => Some(Signer::new(credentials(options)?, &options.http_s3_region)),
    };
    Ok(S3 {
        signer,
        // The default need not be sent, and not every server knows its name.
        storage_class: Some(options.http_s3_storage_class.clone()).filter(|class| class != "STANDARD"),
        customer_key: customer_key.transpose()?,
        checksum: match options.http_s3_checksum {
            ObjectChecksum::None => None,
            ObjectChecksum::Crc32c => Some(Checksum::Crc32c),
            ObjectChecksum::Sha256 => Some(Checksum::Sha256),
        },
        unsigned_bodies: is_unsigned,
    })
}

/// The keys from the options, or else from the environment or a file.
fn credentials(options: &HttpOptions) -> Result<Credentials, String> {
    let (id, secret) = (&options.http_s3_keyid, options.http_s3_key.given("http_s3_key")?);
    match (id.is_empty(), secret) {
        (false, Some(secret)) => {
            let token = options.http_s3_security_token.given("http_s3_security_token")?;
            return Ok(Credentials { id: id.clone(), secret, token });
        }
        (true, None) if options.http_s3_security_token.is_given() => {
            return Err("http_s3_security_token goes with http_s3_keyid and http_s3_key".to_owned());
        }
        (true, None) => {}
        _ => return Err("http_s3_keyid and http_s3_key go together".to_owned()),
    }
    let found = source(options).credentials().map_err(|error| error.to_string())?;
    if found.as_ref().is_some_and(|found| {
        found.id.contains(char::is_control)
            || found.token.as_ref().is_some_and(|token| token.contains(char::is_control))
    }) {
        return Err("the keys of the environment or the file have a line break, or another control character, in them"
            .to_owned());
    }
    found.ok_or_else(|| {
        "there are no keys: give http_s3_keyid and http_s3_key, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
         write ~/.aws/credentials or ~/.aws/config; http_s3_anonymous=1 does without"
            .to_owned()
    })
}

/// The name of a file on the server.
///
/// # Errors
/// The path cannot be a name on the server; the error says why.
pub(super) fn server_name(options: &HttpOptions, path: &Path) -> Result<String, String> {
    let shown = path.display();
    let text = std::str::from_utf8(path.as_os_str().as_bytes())
        .map_err(|_| format!("{shown}: names of objects are UTF-8"))?;
    let name = format!("/{}", text.trim_start_matches('/'));
    let has_bucket =
        name[1..].split_once('/').is_some_and(|(bucket, rest)| !bucket.is_empty() && !rest.is_empty());
    match options.http_mode {
        // (fio accepts any name: the server's name may include the bucket.)
        HttpProtocol::S3 if options.http_s3_list > 0 && name.len() > 1 => Ok(name),
        HttpProtocol::S3
            if !has_bucket && options.http_s3_addressing == Addressing::Path && !options.lenient =>
        {
            Err(format!(
                "{shown}: this names no object in a bucket; give filename=/BUCKET/NAME, or \
                 http_s3_addressing=virtual where http_host names the bucket"
            ))
        }
        _ => Ok(name),
    }
}
