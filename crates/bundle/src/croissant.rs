//! Writes `croissant.json`: Croissant 1.1 metadata that describes the tables and their columns to
//! programs that load data sets.

use crawl_tables::{ColumnDocumentation, ColumnKind, table_columns};
use serde_json::{Value, json};

use crate::bundle_folder::BundledFile;
use crate::crawl_summary::{CrawlSummary, meaning};

pub(crate) const CROISSANT: &str = "croissant.json";

/// Returns the text of `croissant.json`, which describes `files` and the columns of the tables.
pub(crate) fn croissant(facts: &CrawlSummary, files: &[BundledFile], citation: &str) -> String {
    let distribution: Vec<Value> = files.iter().map(file_object).collect();
    let tables = table_columns().into_iter().filter_map(|table| {
        let path = format!("tables/{}.parquet", table.name);
        files.iter().any(|file| file.path == path).then(|| {
            let fields: Vec<Value> = table
                .columns
                .iter()
                .map(|column| field(table.name, &path, column))
                .collect();
            json!({
                "@type": "cr:RecordSet", "@id": table.name, "name": table.name,
                "description": format!("Each row is {}.", table.row), "field": fields,
            })
        })
    });
    let operator = &facts.report.crawl.operator;
    let mut set = json!({
        "@context": context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": facts.title(),
        "description": facts.summary(),
        "datePublished": facts.day(),
        "version": "1.0.0",
        "license": "No license is stated: the pages are the works of their authors.",
        "citeAs": citation,
        "url": operator.study_page.as_deref().unwrap_or("./"),
        "distribution": distribution,
        "recordSet": tables.collect::<Vec<_>>(),
    });
    if let (Some(author), Some(set)) = (facts.author(), set.as_object_mut()) {
        let kind = match (&operator.name, &operator.institution) {
            (None, Some(_)) => "sc:Organization",
            _ => "sc:Person",
        };
        set.insert("creator".into(), json!({"@type": kind, "name": author}));
    }
    format!("{set:#}\n")
}

fn file_object(file: &BundledFile) -> Value {
    let meaning = meaning(&file.path);
    json!({
        "@type": "cr:FileObject", "@id": file.path, "name": file.path,
        "description": meaning.what, "contentUrl": file.path,
        "contentSize": format!("{} B", file.bytes), "encodingFormat": croissant_type(meaning.media_type),
        "sha256": file.sha256,
    })
}

/// Returns the name that Croissant uses for a media type.
fn croissant_type(media_type: &'static str) -> &'static str {
    match media_type {
        "application/vnd.apache.parquet" => "application/x-parquet",
        other => other,
    }
}

fn field(table: &str, path: &str, column: &ColumnDocumentation) -> Value {
    let kind = match column.kind {
        ColumnKind::Text | ColumnKind::Bytes => "sc:Text",
        ColumnKind::Short => "cr:Int16",
        ColumnKind::Integer => "cr:Int32",
        ColumnKind::Long => "cr:Int64",
        ColumnKind::Time => "sc:DateTime",
    };
    json!({
        "@type": "cr:Field", "@id": format!("{table}/{}", column.name), "name": column.name,
        "description": format!("{} ({})", column.meaning, column.unit), "dataType": kind,
        "source": {"fileObject": {"@id": path}, "extract": {"column": column.name}},
    })
}

/// Returns the JSON-LD context that Croissant 1.1 prescribes.
fn context() -> Value {
    json!({
        "@language": "en", "@vocab": "https://schema.org/",
        "arrayShape": "cr:arrayShape", "citeAs": "cr:citeAs", "column": "cr:column",
        "conformsTo": "dct:conformsTo", "containedIn": "cr:containedIn",
        "cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/",
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "dct": "http://purl.org/dc/terms/", "description": {"@container": "@language"},
        "equivalentProperty": "cr:equivalentProperty",
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "extract": "cr:extract", "field": "cr:field", "fileProperty": "cr:fileProperty",
        "fileObject": "cr:fileObject", "fileSet": "cr:fileSet", "format": "cr:format",
        "includes": "cr:includes", "isArray": "cr:isArray", "isLiveDataset": "cr:isLiveDataset",
        "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5",
        "name": {"@container": "@language"}, "parentField": "cr:parentField", "path": "cr:path",
        "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex",
        "repeated": "cr:repeated", "replace": "cr:replace", "samplingRate": "cr:samplingRate",
        "sc": "https://schema.org/", "separator": "cr:separator", "source": "cr:source",
        "subField": "cr:subField", "transform": "cr:transform",
    })
}
