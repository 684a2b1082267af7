# What a race file uses. It defines a function for ours and one for each peer, which prints one
# number, the higher the better, as its last line - or "SKIP why" - and calls
#
#   race UNIT OURS ROW=PEER[:whom we race]...
#
# Competitors take ROUNDS turns, one after the other, and the best turn of each counts.
# OUT: our programs; PYTHON: of the environment; ROOT: the sources.
peers=$ROOT/tests/bench/peers
export PYTHONDONTWRITEBYTECODE=1 TORCHINDUCTOR_CACHE_DIR=$BUILD/peers-cache

# The value of a row of our benches: `"$OUT/tests/bench/step" gpt2_124m | value_of ROW`
value_of() { awk -F, -v row="$1" '$1 == row {print $2}'; }

# The version of a Python package.
version_of() { "$PYTHON" -c "from importlib.metadata import version; print('$1', version('$1'))"; }

better() { awk -v a="$1" -v b="${2:-0}" 'BEGIN {print (a > b) ? a : b}'; }

take_turn() { # take_turn FUNCTION: its number or "SKIP why"; 1 when it printed neither
  local line
  line=$("$1" | tail -1)
  case $line in SKIP*) echo "$line"; return 0 ;; esac
  awk -v n="$line" 'BEGIN {exit !(n ~ /^[0-9.]+(e[-+]?[0-9]+)?$/ && n > 0)}' || return 1
  echo "$line"
}

print_row() { # print_row ROW OURS UNIT PEER AGAINST
  case $4 in
    SKIP*) echo "peer_$1,,,,${4//,/;}" ;;
    *) awk -v row="$1" -v ours="$2" -v unit="$3" -v theirs="$4" -v against="$5" \
      'BEGIN {printf "peer_%s,%.4g,%s,%.3f,%s\n", row, ours, unit, ours / theirs, against}' ;;
  esac
}

race() {
  local unit=$1 ours=$2 round function value
  shift 2
  declare -A best=()
  for ((round = 1; round <= ${ROUNDS:-3}; round++)); do
    for function in "$ours" "${@#*=}"; do
      function=${function%%:*}
      case ${best[$function]:-} in SKIP*) continue ;; esac
      value=$(take_turn "$function") || { echo "$function gave no number" >&2; return 1; }
      echo "  round $round  $function  $value $unit" >&2
      case $value in SKIP*) best[$function]=$value ;; *) best[$function]=$(better "$value" "${best[$function]:-}") ;; esac
    done
  done
  local peer whom
  for peer in "$@"; do
    function=${peer#*=}
    whom=${function#*:} function=${function%%:*}
    print_row "${peer%%=*}" "${best[$ours]}" "$unit" "${best[$function]}" "$whom"
  done
}
