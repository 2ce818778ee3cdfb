"""The functions and node types that a query may contain; anything else is refused."""

from sqlglot import exp


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SCALAR_FUNCTIONS: dict[str, frozenset[str]] = {
    "sqlite": _words("""
-> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 cast ceil ceiling char coalesce concat
concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees
dense_rank exists exp first_value floor format glob group_concat hex highlight if ifnull iif instr
json json_array json_array_insert json_array_length json_error_position json_extract
json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote
json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_object
julianday lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim match
matchinfo max median min mod nth_value ntile nullif octet_length percent_rank percentile
percentile_cont percentile_disc pi pow power printf quote radians random rank replace round
row_number rtrim sign sin sinh snippet soundex sqlite_version sqrt strftime string_agg substr
substring subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr unixepoch
unlikely upper
"""),
    "duckdb": _words("""
abs acos acosh add age ago alias any_value approx_count_distinct approx_distinct approx_quantile
approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null
arg_min_nulls_last argmax argmin array_agg array_aggr array_aggregate array_append array_apply
array_cat array_concat array_contains array_cosine_distance array_cosine_similarity
array_cross_product array_distance array_distinct array_dot_product array_extract array_filter
array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
array_intersect array_length array_negative_dot_product array_negative_inner_product array_pop_back
array_pop_front array_position array_prepend array_push_back array_push_front array_reduce
array_resize array_reverse array_reverse_sort array_select array_slice array_sort array_to_json
array_to_string array_to_string_comma_default array_transform array_unique array_value array_where
array_zip ascii asin asinh atan atan2 atanh avg bar base64 bin bit_and bit_count bit_length bit_or
bit_position bit_xor bitstring bitstring_agg bool_and bool_or cardinality cast cbrt ceil ceiling
century char_length character_length chr coalesce columns concat concat_ws contains corr cos cosh
cot count count_if count_star countif covar_pop covar_samp cume_dist current_database current_date
current_localtime current_localtimestamp current_schema damerau_levenshtein date date_add date_diff
date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek
dayofyear days_in_month decade decode degrees dense_rank divide editdist3 element_at encode
ends_with entropy enum_code enum_first enum_last enum_range enum_range_boundary epoch epoch_ms
epoch_ns epoch_us equi_width_bins era error even exists exp extract factorial fdiv fill filter first
first_value flatten floor fmod format format_bytes formatreadabledecimalsize formatreadablesize
from_base64 from_binary from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid
generate_series generate_subscripts geomean geometric_mean get_bit get_current_time
get_current_timestamp grade_up greatest greatest_common_divisor group_concat grouping grouping_id
hamming hash hex histogram histogram_exact hour if ifnull ilike_escape instr interval isfinite isinf
isnan isodow isoyear jaccard jaro_similarity jaro_winkler_similarity json json_array
json_array_length json_contains json_deep_merge json_exists json_extract json_extract_path
json_extract_path_text json_extract_string json_group_array json_group_object json_group_structure
json_insert json_keys json_merge_patch json_merge_patch_diff json_normalize json_object json_pretty
json_quote json_remove json_replace json_set json_strip_nulls json_structure json_transform
json_transform_strict json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop lag
last last_day last_value lcase lcm lead least least_common_multiple left left_grapheme len length
length_grapheme levenshtein lgamma like_escape list list_aggr list_aggregate list_any_value
list_append list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element
list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all list_has_any
list_histogram list_indexof list_inner_product list_intersect list_kurtosis list_kurtosis_pop
list_last list_mad list_max list_median list_min list_mode list_negative_dot_product
list_negative_inner_product list_pack list_position list_prepend list_product list_reduce
list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value
list_var_pop list_var_samp list_where list_zip listagg ln log log10 log2 lower lpad ltrim mad
make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz map
map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
map_extract_value map_from_entries map_keys map_values max max_by md5 md5_number md5_number_lower
md5_number_upper mean median microsecond millennium millisecond min min_by minute mismatches mod
mode month monthname multiply nanosecond nextafter nfc_normalize normalized_interval
not_ilike_escape not_like_escape now nth_value ntile nullif nvl octet_length ord overlay
parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path percent_rank
percentile_cont percentile_disc pg_size_pretty pg_typeof pi position pow power printf product
quantile quantile_cont quantile_disc quarter radians random range rank rank_dense reduce
regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
regexp_split_to_array regexp_split_to_table regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy repeat replace reservoir_quantile reverse right right_grapheme
round round_even roundbankers row row_number row_to_json rpad rtrim second sem set_bit sha1 sha256
sign signbit sin sinh skewness split split_part sqrt st_asbinary st_asgeojson st_astext st_aswkb
st_aswkt st_crs st_geomfromgeojson st_geomfromwkb st_intersects_extent st_setcrs starts_with stddev
stddev_pop stddev_samp str_split str_split_regex strftime string_agg string_split string_split_regex
string_to_array strip_accents strlen strpos strptime struct struct_concat struct_contains
struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack
struct_position struct_update struct_values substr substring substring_grapheme subtract suffix sum
sum_no_overflow sumkahan switch tan tanh time time_bucket timestamp timezone timezone_hour
timezone_minute to_base to_base64 to_binary to_centuries to_days to_decades to_hex to_hours to_json
to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds
to_timestamp to_weeks to_years today transaction_timestamp translate trim trunc try try_cast
try_strptime typeof ucase unbin unhex unicode union union_extract union_tag union_value unnest upper
url_decode url_encode uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop
var_samp variance variant_array_length variant_contains variant_exists variant_extract
variant_extract_string variant_keys variant_type variant_typeof version wavg week weekday weekofyear
weighted_avg xor year yearweek
"""),
    "postgres": _words("""
abs acos acosd acosh age all any any_value area array_agg array_append array_cat array_dims
array_length array_lower array_ndims array_position array_positions array_prepend array_remove
array_replace array_reverse array_sample array_shuffle array_sort array_to_json array_to_string
array_to_tsvector array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avg bit_and
bit_count bit_length bit_or bit_xor bool bool_and bool_or btrim cardinality casefold cast cbrt ceil
ceiling center char_length character_length chr clock_timestamp coalesce concat concat_ws
convert_from convert_to corr cos cosd cosh cosine_distance cot cotd count covar_pop covar_samp
cume_dist current_catalog current_database current_date current_schema current_time
current_timestamp current_user daitch_mokotoff date date_bin date_part date_subtract date_trunc
datemultirange daterange decode degrees dense_rank diameter difference div dmetaphone dmetaphone_alt
encode enum_first enum_last enum_range erf erfc every exists exp extract factorial family
first_value float4 float8 floor format gamma gcd gen_random_uuid generate_series generate_subscripts
get_bit get_byte greatest grouping height host hostmask initcap inner_product int2 int4
int4multirange int4range int8 int8multirange int8range isempty isfinite json json_agg json_array
json_array_elements json_array_elements_text json_array_length json_arrayagg json_build_array
json_build_object json_each json_each_text json_exists json_extract_path json_extract_path_text
json_object json_object_agg json_object_agg_unique json_object_keys json_objectagg json_query
json_scalar json_serialize json_strip_nulls json_to_tsvector json_typeof json_value jsonb_agg
jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array
jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text
jsonb_insert jsonb_object jsonb_object_agg jsonb_object_agg_unique jsonb_object_keys
jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz
jsonb_path_query_tz jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_tsvector
jsonb_typeof justify_days justify_hours justify_interval l1_distance l2_distance l2_norm lag
last_value lcm lead least left length levenshtein levenshtein_less_equal lgamma ln localtime
localtimestamp log log10 lower lower_inc lower_inf lpad ltrim make_date make_interval make_time
make_timestamp make_timestamptz masklen max md5 metaphone min min_scale mod mode multirange netmask
network normalize now npoints nth_value ntile nullif num_nonnulls num_nulls numeric nummultirange
numnode numrange octet_length overlaps overlay parse_ident percent_rank percentile_cont
percentile_disc pg_column_size pg_size_bytes pg_size_pretty pg_typeof phraseto_tsquery pi
plainto_tsquery point position pow power quote_ident quote_literal quote_nullable radians radius
random random_normal range_agg range_intersect_agg range_merge rank regexp_count regexp_instr
regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
regr_syy repeat replace reverse right round row row_number row_to_json rpad rtrim scale session_user
set_bit set_byte set_masklen setweight sha224 sha256 sha384 sha512 show_trgm sign similarity sin
sind sinh some soundex split_part sqrt st_area st_asgeojson st_astext st_centroid st_contains
st_covers st_distance st_dwithin st_envelope st_equals st_geomfromtext st_intersection st_intersects
st_length st_makepoint st_point st_setsrid st_srid st_transform st_within st_x st_y starts_with
statement_timestamp stddev stddev_pop stddev_samp strict_word_similarity string_agg string_to_array
string_to_table strip strpos substr substring sum tan tand tanh text timeofday timestamp timestamptz
timezone to_ascii to_bin to_char to_date to_hex to_json to_jsonb to_number to_oct to_timestamp
to_tsquery to_tsvector transaction_timestamp translate trim trim_array trim_scale trunc ts_delete
ts_filter ts_headline ts_rank ts_rank_cd tsmultirange tsquery_phrase tsrange tstzmultirange
tstzrange tsvector_to_array unaccent unicode_assigned unistr unnest upper upper_inc upper_inf
uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop var_samp varchar variance
vector_dims vector_norm version websearch_to_tsquery width width_bucket word_similarity
"""),
}
"""Scalar, aggregate and window functions."""

TABLE_FUNCTIONS: dict[str, frozenset[str]] = {
    "sqlite": frozenset({"json_each", "json_tree"}),
    "duckdb": frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"}),
    "postgres": _words("""
generate_series generate_subscripts json_array_elements json_array_elements_text json_each
json_each_text json_object_keys json_to_record json_to_recordset jsonb_array_elements
jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query
jsonb_path_query_tz jsonb_to_record jsonb_to_recordset regexp_matches regexp_split_to_table
string_to_table unnest
"""),
}
"""Functions that may be called in FROM, as if they were tables."""

QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
"""The node types that may be at the top of a statement."""

_NODES = """
Add Adjacent Alias Aliases All Any AtTimeZone Between BitString BitwiseAnd BitwiseLeftShift
BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor Boolean Bracket ByteString CTE Column ColumnDef
Comprehension Cube DPipe DataType DataTypeParam Distinct Div Dot EQ Escape Except ExtendsLeft
ExtendsRight Fetch Filter From GT GTE Glob Group GroupingSets Having HavingMax HexString ILike
Identifier IgnoreNulls In IntDiv Intersect Interval IntervalSpan Is JSON JSONExtractQuote
JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot JSONPathScript
JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard Join Kwarg LT LTE
Lambda Lateral Like Limit LimitOptions Literal Match Mod Mul NEQ National Neg Not Null NullSafeEQ
NullSafeNEQ Offset Operator Order Ordered Overlaps Paren Pivot PivotAlias PivotAny PropertyEQ
Pseudocolumn Qualify RawString RespectNulls Rollup Select SimilarTo Slice Star Sub Subquery
TableAlias TableColumn TableSample Tuple UnicodeString Union UnpivotColumns Values Var Where Window
WindowSpec With WithinGroup
"""

# Written by an operator or a keyword, so that there is no function name in the text. All compute
# from their arguments alone.
_SYNTAX_FUNCTIONS = """
All And Array ArrayContainedBy ArrayContainsAll ArrayOverlaps ArrayConcat Case Cast Ceil Chr
Coalesce Collate Columns Concat CurrentDate CurrentTime CurrentTimestamp Distance Exists Extract
Floor GroupConcat If JSONArrayAgg JSONBContains JSONBContainsAllTopKeys JSONBContainsAnyTopKeys
JSONBContainsTopKey JSONBDeleteAtPath JSONBExtract JSONBExtractScalar JSONBPathExists JSONExtract
JSONExtractScalar JSONArray JSONObject List Localtime Localtimestamp Map MatchAgainst Or Pow
RegexpILike RegexpLike Right Left StartsWith StrPosition Struct Substring ToMap Trim Try TryCast
TsOrDsToDate TsOrDsToTimestamp Unnest Xor
"""


def _classes(names: str) -> tuple[type[exp.Expr], ...]:
    # A name that a release of sqlglot does not have cannot be in its trees either.
    return tuple(getattr(exp, name) for name in names.split() if hasattr(exp, name))


NODES = frozenset(_classes(_NODES))
SYNTAX_FUNCTIONS = frozenset(_classes(_SYNTAX_FUNCTIONS))


def allowed_node(node: exp.Expr) -> bool:
    """Return whether the exact class of a node is in the lists above. A subclass of a listed class
    is refused, because a new release of sqlglot may add it.
    """
    return type(node) in NODES or type(node) in SYNTAX_FUNCTIONS
