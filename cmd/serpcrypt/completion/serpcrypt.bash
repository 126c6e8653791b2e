# Completion of serpcrypt's command line in bash.

_serpcrypt() {
	local words=() word piece typed kept line i
	# bash divides words at "=" and ":" as well; the program wants them whole.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		piece=${COMP_WORDS[i]}
		if [[ ${#words[@]} -gt 0 && ($piece == [=:]* || ${COMP_WORDS[i - 1]} == [=:]) ]]; then
			words[-1]+=$piece
		else
			words+=("$piece")
		fi
	done
	for i in "${!words[@]}"; do
		word=${words[i]#[\"\']}
		[[ $word == "${words[i]}" ]] || word=${word%"${words[i]:0:1}"}
		words[i]=${word//\\/}
	done
	[[ $piece != [=:] ]] || piece=
	piece=${piece#[\"\']} piece=${piece//\\/}
	typed=${words[-1]}
	kept=${typed%"$piece"}

	COMPREPLY=()
	while IFS= read -r line; do
		word=${line%%$'\t'*}
		case $word in
		:files) compopt -o default ;;
		:folders) compopt -o dirnames ;;
		*)
			[[ $typed != --*=* ]] || word=${typed%%=*}=$word
			[[ $word == "$typed"* ]] || continue
			[[ $word != *[^A-Za-z0-9_=.:/-]* ]] || compopt -o filenames # quotes it
			COMPREPLY+=("${word#"$kept"}")
			;;
		esac
	done < <(serpcrypt complete -- "${words[@]}" 2>/dev/null)
}

complete -F _serpcrypt serpcrypt
