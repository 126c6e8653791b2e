#compdef serpcrypt
# Completion of serpcrypt's command line in zsh.

local line name
local -a found answer
answer=("${(@f)$(serpcrypt complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
compset -P '--[^=]#='
for line in "${answer[@]}"; do
	name=${line%%$'\t'*}
	case $name in
	'') ;;
	:files) _files ;;
	:folders) _files -/ ;;
	*) found+=("${name//(#m)[:\\]/\\$MATCH}:${line#*$'\t'}") ;;
	esac
done
_describe -t serpcrypt serpcrypt found
