// The schemas of the kinds, without what makes a document of them.
#pragma once

#include "parts.hpp"
#include "shardplan/plan/field_table.hpp"

namespace shardplan::io::schema {

/// A field of a run file, as its row and its syntax have it.
Json field_schema(const plan::FieldRow& row, const CatalogSource& catalog);

/// Run files; its "definitions" are the sections, the model and the cluster.
Json run_schema(const CatalogSource& catalog);
/// A run file with every default filled in; refers to the definitions of run_schema().
Json resolved_run_schema(const Json& run);
Json requirements_schema();

Json model_schema();
Json cluster_schema(const CatalogSource& catalog);
Json gpu_schema();

Json output_schema(const CatalogSource& catalog);

}  // namespace shardplan::io::schema
