//! Writing results: whole or not at all.

use std::io::Write;
use std::path::Path;

/// Writes `bytes` to `path` through a temporary file beside it, so that no half-written file stays.
///
/// `-` is standard output.
pub fn write(path: &str, bytes: &[u8]) -> anyhow::Result<()> {
    if path == "-" {
        std::io::stdout().lock().write_all(bytes)?;
        return Ok(());
    }
    let target = Path::new(path);
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let explain = |e: std::io::Error| anyhow::anyhow!("cannot write {path}: {e}");
    let mut file = builder().tempfile_in(folder).map_err(explain)?;
    file.write_all(bytes).map_err(explain)?;
    file.persist(target).map_err(|e| explain(e.error))?;
    Ok(())
}

/// Temporary files are private by default; results get the permissions that any new file gets.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder
}
