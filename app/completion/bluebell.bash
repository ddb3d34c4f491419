# SPDX-License-Identifier: BSD-3-Clause
# Completion of bash for Bluebell's programs. They are read from their own --help: options, and the names
# that it lists below an option. Before "--" it offers options of DPDK's EAL.

# Prints a line for each option of program $1: the option, then the names that it takes.
_bluebell_options() {
  "$1" --help 2>/dev/null | awk '
    /^ ? ? ? ? ? ? ?(-[[:alnum:]-]+,? +)*--[[:alnum:]]/ {
      if (option != "") print option names
      match($0, /--[[:alnum:]-]+/)
      option = substr($0, RSTART, RLENGTH)
      column = 0
      names = ""
      next
    }
    option != "" && /^                    +[[:alnum:]_]+  +[^ ]/ {
      match($0, /[^ ]/)
      if (column == 0) column = RSTART
      if (RSTART == column) { split($0, word, " "); names = names " " word[1] }
      next
    }
    /^[^ ]/ { if (option != "") print option names; option = "" }
    END { if (option != "") print option names }'
}

_bluebell() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i words= own=
  # bb_hca and bb_verbs take their own options without "--", too.
  case ${1##*/} in
  bb_hca) own=1 ;;
  bb_verbs)
    # Behind its options is another program's command line.
    for ((i = 1; i < COMP_CWORD; i++)); do
      [ "${COMP_WORDS[i]}" != -- ] || { _command_offset $((i + 1)) 2>/dev/null; return; }
    done
    own=1 ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${COMP_WORDS[i]}" = -- ] && own=1
  done
  if [ -z "$own" ]; then
    words="-- --help -l -m --no-huge --in-memory --no-pci --vdev= --file-prefix= --no-telemetry --log-level="
  else
    case $prev in
    -d) prev=--device ;;
    -o) prev=--op ;;
    -P) prev=--protocol ;;
    esac
    case $prev in
    --device | --peer-device)
      words="soft0 $(cd /sys/class/infiniband 2>/dev/null && echo *)" ;;
    --json | --csv | --report | --socket | --config | --file | --load | --hgrm | --cmdline-file | --journal | --generate)
      COMPREPLY=($(compgen -f -- "$cur"))
      return ;;
    *)
      words=$(_bluebell_options "$1" | awk -v name="$prev" '$1 == name { sub(/^[^ ]+ /, ""); print }')
      [ -n "$words" ] || words=$(_bluebell_options "$1" | cut -d' ' -f1) ;;
    esac
  fi
  # The last item of a list with commas.
  if [[ $cur == *,* && $cur != -* ]]; then
    COMPREPLY=($(compgen -P "${cur%,*}," -W "$words" -- "${cur##*,}"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
  [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}

complete -F _bluebell testrdma bb_perf bb_hca bb_verbs bench hft_pipeline nvmf_target nvmf_client
